//! The syntax of expressions: a part of C's.

use super::{ExpressionError, ExpressionTerm};

/// The most operations of an expression.
const MOST_OPERATIONS: usize = 128;

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<ExpressionTerm, ExpressionError> {
    let mut parser = Parser { text, at: 0, operations: 0 };
    let term = parser.sum()?;
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
    /// The text that has not been read, without the blanks before it.
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

    fn sum(&mut self) -> Result<ExpressionTerm, ExpressionError> {
        let mut sum = self.product()?;
        loop {
            let sign = match self.rest() {
                rest if rest.starts_with("->") => break,
                rest if rest.starts_with('+') => 1,
                rest if rest.starts_with('-') => -1,
                _ => break,
            };
            self.at += 1;
            sum = ExpressionTerm::Sum(Box::new(sum), sign, Box::new(self.product()?));
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<ExpressionTerm, ExpressionError> {
        let mut product = self.prefixed()?;
        while self.takes("*") {
            self.count()?;
            let ExpressionTerm::Number(factor) = self.primary()? else {
                return Err(self.wrong("only numbers follow '*'"));
            };
            product = ExpressionTerm::Product(Box::new(product), factor);
        }
        Ok(product)
    }

    fn prefixed(&mut self) -> Result<ExpressionTerm, ExpressionError> {
        self.count()?;
        if self.takes("*") {
            return Ok(ExpressionTerm::Pointee(Box::new(self.prefixed()?)));
        }
        let before = self.at;
        if self.takes("(")
            && let Some(of) = self.type_name()
        {
            return Ok(ExpressionTerm::Cast(of, Box::new(self.prefixed()?)));
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

    fn suffixed(&mut self) -> Result<ExpressionTerm, ExpressionError> {
        let mut term = self.primary()?;
        loop {
            self.count()?;
            // What is accessed says whether it is a pointer.
            if self.takes("->") || self.takes(".") {
                term = ExpressionTerm::Member(Box::new(term), self.name()?.into());
            } else if self.takes("[") {
                let index = self.sum()?;
                self.expect("]")?;
                term = ExpressionTerm::Element(Box::new(term), Box::new(index));
            } else {
                return Ok(term);
            }
        }
    }

    fn primary(&mut self) -> Result<ExpressionTerm, ExpressionError> {
        if self.takes("(") {
            let inner = self.sum()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.takes("$i") {
            return Ok(ExpressionTerm::Index);
        }
        if self.takes("$") {
            let number = self.run(|c| c.is_ascii_digit()).parse().ok();
            let number: usize = number
                .filter(|number| (1..=super::ARGUMENTS).contains(number))
                .ok_or_else(|| self.wrong("arguments are $1 to $6"))?;
            return Ok(ExpressionTerm::Argument(number - 1));
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            let digits = self.run(|c| c.is_ascii_alphanumeric());
            let number = match digits.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            return number
                .map(ExpressionTerm::Number)
                .map_err(|_| self.wrong(&format!("'{digits}' is no number")));
        }
        match self.rest() {
            "" => Err(self.wrong("an argument is missing, such as $1")),
            _ => Ok(ExpressionTerm::Variable(self.name()?.into())),
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
