//! Functions at whose entries calls for objects begin, with the compiled expressions of their rules.

use events::LoadedImage;
use image::{
    CallState, CompiledExpression, EvaluationPoint, Expression, ExpressionError, ExpressionTypes, Image,
};

use super::Entered;
use super::rules::{NamePiece, NameTemplate, ObjectRule};
use super::statements::normalized;
use super::steps::{self, StepSite, dispatches};

/// The most elements of a list that are compared with one.
pub(super) const MOST_ELEMENTS: u64 = 1 << 10;
/// The mark in names before a number that a label replaces: no name of a program has it.
const LABELLED: char = events::LABELLED_NUMBER;

/// A function at whose entry a call for an object begins.
#[derive(Clone, Debug)]
pub(super) struct ObjectSite {
    pub(super) rule: usize,
    pub(super) key: Option<CompiledExpression>,
    pub(super) identity: Option<CompiledExpression>,
    pub(super) name: CompiledTemplate,
    below: Option<CompiledTemplate>,
    /// By the details of the rule.
    details: Vec<CompiledDetail>,
    /// Of a function with steps: whether its program is a new one.
    pub(super) begins: Option<CompiledExpression>,
}

/// The sites of an image, by link-time addresses.
#[derive(Debug, Default)]
pub(super) struct ImageSites {
    /// At entries of functions.
    pub(super) functions: Vec<(u64, ObjectSite)>,
    /// At the steps of those that interpret.
    pub(super) steps: Vec<(u64, StepSite)>,
}

/// A text with values.
#[derive(Clone, Debug)]
pub(super) struct CompiledTemplate(Vec<CompiledPiece>);

/// A part of a text.
#[derive(Clone, Debug)]
enum CompiledPiece {
    Text(String),
    /// The value of the first expression that has one; whether it is a number that has a label.
    Value(Vec<CompiledExpression>, bool),
}

/// Text that is appended to a name.
#[derive(Clone, Debug)]
struct CompiledDetail {
    text: CompiledTemplate,
    /// The text of an element, and which element it is.
    ordinal: Option<(CompiledTemplate, CompiledExpression)>,
}

impl ObjectSite {
    /// Makes a site from the compiled expressions of a rule, which `next` returns in the order of [`expressions`]. None if `key` or
    /// `begins` did not compile for the image.
    fn new(
        number: usize,
        rule: &ObjectRule,
        next: &mut dyn FnMut() -> Option<CompiledExpression>,
    ) -> Option<ObjectSite> {
        let key = rule.key.as_ref().map(|_| next());
        let identity = rule.identity.as_ref().and_then(|_| next());
        let begins = rule.steps.as_ref().map(|_| next());
        let name = rule.entry_name().map_or(CompiledTemplate(Vec::new()), |name| template(name, next));
        let below = rule.below.as_ref().map(|below| template(below, next));
        let mut details = Vec::new();
        for detail in &rule.detail {
            let text = template(&detail.text, next);
            let ordinal = detail.ordinal.as_ref().map(|ordinal| (template(&ordinal.text, next), next()));
            let ordinal = ordinal.and_then(|(text, index)| Some((text, index?)));
            details.push(CompiledDetail { text, ordinal });
        }
        let all = |one: Option<Option<CompiledExpression>>| one.map_or(Some(None), |one| one.map(Some));
        let (key, begins) = (all(key)?, all(begins)?);
        Some(ObjectSite { rule: number, key, identity, name, below, details, begins })
    }

    /// The name of the object below which the call's is; none if the rule has no such, or a part of it has no value.
    pub(super) fn name_above(&self, rule: &ObjectRule, entered: &Entered) -> Option<String> {
        let name = self.below.as_ref()?.text(entered).filter(|name| !name.is_empty())?;
        Some(if rule.normalize { normalized(&name) } else { name })
    }

    /// The name of the object that a call is for; none if a part of it has no value.
    pub(super) fn full_name(&self, rule: &ObjectRule, entered: &Entered) -> Option<String> {
        let plain = self.name.text(entered).filter(|name| !name.is_empty())?;
        if rule.normalize {
            return Some(normalized(&plain));
        }
        let mut name = rule.rename.get(&plain).unwrap_or(&plain).clone();
        let detail = rule.detail.iter().position(|detail| detail.of.contains(&plain));
        name.extend(detail.and_then(|detail| self.details[detail].text(entered)));
        Some(name)
    }
}

impl CompiledTemplate {
    /// The text of all pieces; none if one has no value.
    pub(super) fn text(&self, entered: &dyn CallState) -> Option<String> {
        let piece = |piece: &CompiledPiece| match piece {
            CompiledPiece::Text(text) => Some(text.clone()),
            CompiledPiece::Value(values, is_labelled) => {
                let text = values.iter().find_map(|value| value.text(entered))?;
                Some(if *is_labelled { format!("{LABELLED}{text}") } else { text })
            }
        };
        self.0.iter().map(piece).collect()
    }
}

impl CompiledDetail {
    fn text(&self, entered: &Entered) -> Option<String> {
        let text = self.text.text(entered)?;
        let Some((of_element, index)) = &self.ordinal else { return Some(text) };
        let index = index.value(entered)?;
        let of = |index| of_element.text(&Entered { index, ..*entered });
        let own = of(index);
        match (0..index.min(MOST_ELEMENTS)).filter(|&other| of(other) == own).count() {
            0 => Some(text),
            before => Some(format!("{text}_{before}")),
        }
    }
}

/// The functions of an image that work on objects. `problem` gets expressions that do not fit.
pub(super) fn sites(
    rules: &[ObjectRule],
    image: &LoadedImage,
    file: &Image,
    problem: &mut dyn FnMut(ExpressionError),
) -> ImageSites {
    let mut functions: Vec<(EvaluationPoint, usize)> = Vec::new();
    let mut steps: Vec<(EvaluationPoint, usize)> = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        for name in rule.functions.iter().filter(|name| name.may_be_in(image)) {
            for symbol in name.symbols_in(file).into_iter().filter(|symbol| symbol.function) {
                let entry = EvaluationPoint { function: symbol.address, instruction: None };
                functions.push((entry, number));
                let jumps = rule.steps.iter().flat_map(|_| dispatches(file, symbol));
                steps.extend(jumps.map(|at| (EvaluationPoint { instruction: Some(at), ..entry }, number)));
            }
        }
    }
    if functions.is_empty() {
        return ImageSites::default();
    }
    let at_entries =
        functions.iter().flat_map(|&(at, rule)| expressions(&rules[rule]).map(move |one| (at, one)));
    let at_steps = steps.iter().flat_map(|&(at, rule)| {
        let of = rules[rule].steps.iter().flat_map(move |steps| steps::expressions(&rules[rule], steps));
        of.map(move |one| (at, one))
    });
    let mut compiled = ExpressionTypes::new(file, image.bias).compile(at_entries.chain(at_steps)).into_iter();
    let mut next = || compiled.next()?.map_err(&mut *problem).ok();
    let functions = functions
        .iter()
        .filter_map(|&(at, number)| Some((at.function, ObjectSite::new(number, &rules[number], &mut next)?)))
        .collect();
    // A function may have other tables of jumps, where the step is not known: one where it is suffices.
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for &(at, number) in &steps {
        let rule = &rules[number];
        let mut next = || compiled.next()?.map_err(|error| missing.push((number, error))).ok();
        let site = rule.steps.as_ref().and_then(|steps| StepSite::new(number, (rule, steps), &mut next));
        found.extend(at.instruction.zip(site));
    }
    missing.retain(|(rule, _)| found.iter().all(|(_, site)| site.rule != *rule));
    missing.into_iter().for_each(|(_, error)| problem(error));
    ImageSites { functions, steps: found }
}

pub(super) fn template(
    of: &NameTemplate,
    next: &mut dyn FnMut() -> Option<CompiledExpression>,
) -> CompiledTemplate {
    let piece = |piece: &NamePiece| match piece {
        NamePiece::Text(text) => CompiledPiece::Text(text.clone()),
        NamePiece::Value { expressions, is_labelled } => {
            CompiledPiece::Value(expressions.iter().filter_map(|_| next()).collect(), *is_labelled)
        }
    };
    CompiledTemplate(of.pieces.iter().map(piece).collect())
}

/// The expressions of a rule at entries, in the order in which a site has them.
fn expressions(rule: &ObjectRule) -> impl Iterator<Item = &Expression> {
    let begins = rule.steps.iter().map(|steps| &steps.begins);
    let mut all: Vec<&Expression> =
        rule.key.iter().chain(&rule.identity).chain(begins).map(|expression| &expression.1).collect();
    rule.entry_name().into_iter().chain(&rule.below).for_each(|name| all.extend(name.expressions()));
    for detail in &rule.detail {
        all.extend(detail.text.expressions());
        if let Some(ordinal) = &detail.ordinal {
            all.extend(ordinal.text.expressions());
            all.push(&ordinal.index.1);
        }
    }
    all.into_iter()
}

/// The number of functions of an image that work on objects by these rules, and what does not fit their types.
pub fn check_objects(
    rules: &[ObjectRule],
    image: &LoadedImage,
    file: &Image,
) -> (usize, Vec<ExpressionError>) {
    let mut problems = Vec::new();
    let found = sites(rules, image, file, &mut |problem| problems.push(problem));
    (found.functions.len() + problems.len(), problems)
}
