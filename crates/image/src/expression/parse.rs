//! The syntax of expressions: a part of C's.

use super::operators::Operator;
use super::{ExpressionError, Term};

/// The most operations of an expression.
const MOST_OPERATIONS: usize = 128;

/// Operators between operands, from those that bind least, as in C. Of one level, longer ones come first.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("&&", Operator::Both)],
    &[("&", Operator::BitAnd)],
    &[("==", Operator::Equal), ("!=", Operator::Unequal)],
    &[("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Less), (">", Operator::Greater)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply)],
];

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Term, ExpressionError> {
    let mut parser = Parser { text, at: 0, operations: 0 };
    let term = parser.whole()?;
    match parser.rest() {
        "" => Ok(term),
        rest => Err(parser.wrong(&format!("'{rest}' follows a complete expression"))),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    operations: usize,
}

impl<'t> Parser<'t> {
    /// What has not been read, without the blanks before it.
    fn rest(&mut self) -> &'t str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn wrong(&self, reason: &str) -> ExpressionError {
        ExpressionError::Syntax { text: self.text.into(), reason: reason.into() }
    }

    fn takes(&mut self, word: &str) -> bool {
        let takes = self.rest().starts_with(word);
        if takes {
            self.at += word.len();
        }
        takes
    }

    fn expect(&mut self, word: &str) -> Result<(), ExpressionError> {
        if self.takes(word) { Ok(()) } else { Err(self.wrong(&format!("'{word}' is missing"))) }
    }

    /// Characters of the same kind.
    fn run(&mut self, is_in: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> Result<&'t str, ExpressionError> {
        let name = self.run(|c| c.is_alphanumeric() || c == '_');
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if is_name { Ok(name) } else { Err(self.wrong("a name is missing")) }
    }

    /// Counts an operation, so that none is too deep.
    fn count(&mut self) -> Result<(), ExpressionError> {
        self.operations += 1;
        if self.operations > MOST_OPERATIONS { Err(self.wrong("it is too long")) } else { Ok(()) }
    }

    /// Operands with operators between them that bind as closely as this level's, or closer.
    fn binary(&mut self, level: usize) -> Result<Term, ExpressionError> {
        let Some(operators) = LEVELS.get(level) else { return self.prefixed() };
        let mut term = self.binary(level + 1)?;
        loop {
            let rest = self.rest();
            let is_next = |&&(text, _): &&(&str, Operator)| rest.starts_with(text);
            let Some(&(text, operator)) = operators.iter().find(is_next) else { return Ok(term) };
            if rest.starts_with("->") || (text == "&" && rest.starts_with("&&")) {
                return Ok(term);
            }
            self.count()?;
            self.at += text.len();
            term = Term::Binary(operator, Box::new(term), Box::new(self.binary(level + 1)?));
        }
    }

    fn whole(&mut self) -> Result<Term, ExpressionError> {
        self.binary(0)
    }

    fn prefixed(&mut self) -> Result<Term, ExpressionError> {
        self.count()?;
        if self.takes("*") {
            return Ok(Term::Pointee(Box::new(self.prefixed()?)));
        }
        if self.takes("&") {
            return Ok(Term::Address(Box::new(self.prefixed()?)));
        }
        if self.takes("-") {
            let (zero, of) = (Term::Number(0), self.prefixed()?);
            return Ok(Term::Binary(Operator::Subtract, Box::new(zero), Box::new(of)));
        }
        let before = self.at;
        if self.takes("(")
            && let Some(of) = self.type_name()
        {
            return Ok(Term::Cast(of, Box::new(self.prefixed()?)));
        }
        self.at = before;
        self.suffixed()
    }

    /// The type in the parentheses of a cast, and its closing parenthesis. None if that is no type.
    fn type_name(&mut self) -> Option<TypeName> {
        self.takes("struct ");
        self.takes("union ");
        let name = self.name().ok()?.to_string();
        let mut pointers = 0;
        while self.takes("*") {
            pointers += 1;
        }
        (pointers > 0 && self.takes(")")).then_some(TypeName { name, pointers })
    }

    fn suffixed(&mut self) -> Result<Term, ExpressionError> {
        let mut term = self.primary()?;
        loop {
            self.count()?;
            // What is accessed says whether it is a pointer.
            if self.takes("->") || self.takes(".") {
                term = Term::Member(Box::new(term), self.name()?.into());
            } else if self.takes("[") {
                let index = self.whole()?;
                self.expect("]")?;
                term = Term::Element(Box::new(term), Box::new(index));
            } else {
                return Ok(term);
            }
        }
    }

    fn primary(&mut self) -> Result<Term, ExpressionError> {
        if self.takes("(") {
            let inner = self.whole()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.takes("$i") {
            return Ok(Term::Index);
        }
        if self.takes("$") {
            let number = self.run(|c| c.is_ascii_digit()).parse().ok();
            let number: usize = number
                .filter(|number| (1..=super::ARGUMENTS).contains(number))
                .ok_or_else(|| self.wrong("arguments are $1 to $6"))?;
            return Ok(Term::Argument(number - 1));
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let digits = self.run(|c| c.is_ascii_alphanumeric());
            let number = match digits.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            return number.map(Term::Number).map_err(|_| self.wrong(&format!("'{digits}' is no number")));
        }
        match self.rest() {
            "" => Err(self.wrong("an argument is missing, such as $1")),
            _ => Ok(Term::Variable(self.name()?.into())),
        }
    }
}

/// A type as a cast names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypeName {
    pub(super) name: String,
    /// How many asterisks follow.
    pub(super) pointers: usize,
}
