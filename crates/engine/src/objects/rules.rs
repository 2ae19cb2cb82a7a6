//! Rules that say which functions work on objects, and how the objects are identified and named.

use std::collections::BTreeMap;
use std::str::FromStr;

use image::{Expression, ExpressionError};
use serde::{Deserialize, Serialize};

use crate::program_location::Name;

/// A rule: calls of these functions are calls for an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRule {
    /// The kind of such objects: an operator, a lock.
    pub kind: String,
    /// The functions: `name` or `image!name`.
    pub(crate) functions: Vec<Name>,
    /// The meaning of their calls.
    #[serde(default)]
    pub(crate) role: ObjectRole,
    /// The number that tells objects apart, such as an address. Without it, objects are told apart by their names.
    pub(crate) key: Option<TextExpression>,
    /// The name of an object.
    pub(crate) name: Option<NameTemplate>,
    /// Texts of SQL: names are those of statements without their constants, by which they are grouped.
    #[serde(default)]
    pub(crate) normalize: bool,
    /// The name of the object, made if there is none, below which the object is.
    pub(crate) below: Option<NameTemplate>,
    /// A lock is acquired only by calls with this result; without it, by each call that returns.
    pub(crate) result: Option<u64>,
    /// A key that two objects of one name below one parent must share to be shown as one. Locks with different
    /// ones are different locks, which are shown as one.
    pub(crate) identity: Option<TextExpression>,
    /// Names to show instead.
    #[serde(default)]
    pub(crate) rename: BTreeMap<String, String>,
    /// The details that are appended to names. The first one with the name decides.
    #[serde(default)]
    pub(crate) detail: Vec<NameDetail>,
    /// The function interprets programs, whose steps belong to objects.
    pub(crate) steps: Option<StepRule>,
    /// The requirement that the rule has of a program, for messages: how it must be compiled.
    pub needs: Option<String>,
}

/// Which object each step of a program belongs to that a function interprets. A step begins where the function jumps to the code
/// of the step's operation, by a table: there expressions may name the function's variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepRule {
    /// The number that identifies a step, such as the address of its operation.
    pub(crate) at: TextExpression,
    /// At the function's entry: if it is not 0, its first argument is a new program, or one that changed.
    pub(crate) begins: TextExpression,
    /// The number of elements, of which `$i` is one, from 0.
    pub(crate) elements: TextExpression,
    /// Which steps an element covers. Of several elements that cover a step, the one with the least extent has it.
    pub(crate) covers: Vec<StepCover>,
    /// The object of an element: a number.
    pub(crate) node: TextExpression,
    /// The number of the object above object `$i`; 0 if that is the object of the call. Names are those of object `$i`, too.
    pub(crate) parent: TextExpression,
}

/// Steps that an element covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepCover {
    /// Whether it covers a step: a number that is not 0.
    pub(crate) when: TextExpression,
    /// How many steps it covers, roughly.
    pub(crate) extent: TextExpression,
}

impl StepRule {
    /// The expressions at steps but for those of names, in order.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let covers = self.covers.iter().flat_map(|cover| [&cover.when, &cover.extent]);
        let all = [&self.at, &self.elements, &self.node, &self.parent].into_iter().chain(covers);
        all.map(|expression| &expression.1)
    }
}

/// The meaning of a call for an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ObjectRole {
    /// A new object begins.
    Begins,
    /// The call is for an object that exists.
    #[default]
    Uses,
    /// The object ends with the call.
    Ends,
    /// The object is a lock, which the thread holds when the call returns.
    Acquires,
    /// The object is a lock, which the thread holds no more when the call begins.
    Releases,
    /// The thread waits for the lock of the innermost open call.
    Waits,
    /// No object is worked on: the name is the label of a number, the key, which names have as `{#EXPRESSION}`.
    Labels,
}

impl ObjectRole {
    /// Whether calls acquire or release locks.
    pub(crate) fn is_of_lock(self) -> bool {
        matches!(self, ObjectRole::Acquires | ObjectRole::Releases)
    }
}

/// A detail that is appended to some names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NameDetail {
    /// The names, as they are before they are replaced.
    pub(crate) of: Vec<String>,
    pub(crate) text: NameTemplate,
    /// Tells apart elements of a list that have the same text.
    pub(crate) ordinal: Option<Ordinal>,
}

/// A number behind a name, of the elements of a list that have the same text: the second one is `_1`, the third one `_2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ordinal {
    /// The text of element `$i`, from 0.
    pub(crate) text: NameTemplate,
    /// The element.
    pub(crate) index: TextExpression,
}

/// An expression in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct TextExpression(pub(crate) String, pub(crate) Expression);

impl From<TextExpression> for String {
    fn from(expression: TextExpression) -> String {
        expression.0
    }
}

impl TryFrom<String> for TextExpression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<TextExpression, ExpressionError> {
        let expression = text.parse()?;
        Ok(TextExpression(text, expression))
    }
}

/// A text with expressions in braces: `Seq Scan on {$1->name}`, `{$1->name | $1->number}` for the first that has a value, or
/// `{#$1->number}` for the label of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct NameTemplate {
    text: String,
    pub(crate) pieces: Vec<NamePiece>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NamePiece {
    Text(String),
    /// The value of the first expression that has one.
    Value {
        expressions: Vec<Expression>,
        /// It is a number that has a label.
        is_labelled: bool,
    },
}

impl NameTemplate {
    /// The expressions, in order.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.pieces.iter().flat_map(|piece| match piece {
            NamePiece::Value { expressions, .. } => &expressions[..],
            NamePiece::Text(_) => &[],
        })
    }
}

impl FromStr for NameTemplate {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<NameTemplate, ExpressionError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, after)) = after.split_once('}') else {
                let reason = "'}' is missing".to_string();
                return Err(ExpressionError::Syntax { text: text.into(), reason });
            };
            pieces.push(NamePiece::Text(before.into()));
            let (inside, is_labelled) = match inside.trim_start().strip_prefix('#') {
                Some(number) => (number, true),
                None => (inside, false),
            };
            let alternatives = inside.split('|').map(|text| text.trim().parse());
            let expressions = alternatives.collect::<Result<_, _>>()?;
            pieces.push(NamePiece::Value { expressions, is_labelled });
            rest = after;
        }
        pieces.push(NamePiece::Text(rest.into()));
        Ok(NameTemplate { text: text.into(), pieces })
    }
}

impl From<NameTemplate> for String {
    fn from(template: NameTemplate) -> String {
        template.text
    }
}

impl TryFrom<String> for NameTemplate {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<NameTemplate, ExpressionError> {
        text.parse()
    }
}

impl ObjectRule {
    /// The fault of the rule, if it has one.
    pub fn problem(&self) -> Option<&'static str> {
        if self.functions.is_empty() {
            Some("it has no functions")
        } else if self.steps.is_some() && (self.name.is_none() || self.key.is_some()) {
            Some("the objects of steps have a name and no key")
        } else if self.steps.is_some() && self.role != ObjectRole::Uses {
            Some("a function with steps has no role")
        } else if self.role == ObjectRole::Labels && self.name.is_none() {
            Some("it has no name")
        } else if self.role == ObjectRole::Labels && self.key.is_none() {
            Some("it labels no number: name that as its key")
        } else if self.role == ObjectRole::Waits {
            let is_plain = self.name.is_none() && self.key.is_none();
            (!is_plain).then_some("what is waited for is the lock of the call around, which has the name")
        } else if self.name.is_none() && (self.key.is_none() || self.role == ObjectRole::Begins) {
            Some("it has no name")
        } else if self.key.is_none() && matches!(self.role, ObjectRole::Begins | ObjectRole::Ends) {
            Some("objects without a key neither begin nor end")
        } else if self.key.is_some() && self.role.is_of_lock() {
            Some("locks are told apart by their names: leave out the key")
        } else if self.result.is_some() && self.role != ObjectRole::Acquires {
            Some("only calls that acquire a lock have a result that says so")
        } else {
            None
        }
    }

    /// The name of objects at entries: those of steps are named at the steps.
    pub(crate) fn entry_name(&self) -> Option<&NameTemplate> {
        self.name.as_ref().filter(|_| self.steps.is_none())
    }

    /// Its functions, as users name them.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(Name::text)
    }
}
