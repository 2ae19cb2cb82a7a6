//! Statements of SQL without their constants, by which they are grouped, as PostgreSQL's `pg_stat_statements` does.

/// Words after which a minus sign is that of a number.
const BEFORE_OPERANDS: [&str; 22] = [
    "and", "as", "between", "by", "case", "else", "from", "having", "ilike", "in", "is", "like", "limit",
    "not", "offset", "on", "or", "return", "select", "then", "when", "where",
];

/// The statement with a parameter in place of each constant, in one line, without comments. Parameters that it has keep their numbers.
pub(super) fn normalized(text: &str) -> String {
    let mut lexer = Lexer { rest: text, written: String::new(), parameters: highest_parameter(text) };
    while lexer.token() {}
    lexer.written.trim_end_matches([' ', ';']).to_owned()
}

/// The highest number of a parameter, `$3`; 0 without any.
fn highest_parameter(text: &str) -> u32 {
    let numbers = text.split('$').skip(1).map(|after| {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after[..end].parse().unwrap_or(0)
    });
    // Numbers this high are none of parameters.
    numbers.filter(|&number| number < 1 << 16).max().unwrap_or(0)
}

struct Lexer<'t> {
    rest: &'t str,
    written: String,
    parameters: u32,
}

impl Lexer<'_> {
    /// Reads a token, and writes it or a parameter. False at the end.
    fn token(&mut self) -> bool {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else { return false };
        let second = rest[first.len_utf8()..].chars().next().unwrap_or(' ');
        let length = match first {
            _ if first.is_whitespace() => {
                if !self.written.is_empty() && !self.written.ends_with(' ') {
                    self.written.push(' ');
                }
                self.rest = rest.trim_start();
                return true;
            }
            '-' if second == '-' => return self.skip(rest.find('\n').unwrap_or(rest.len())),
            '/' if second == '*' => return self.skip(rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '\'' => return self.constant(quoted(rest, 0, false)),
            'e' | 'E' if second == '\'' => return self.constant(quoted(rest, 1, true)),
            'b' | 'B' | 'x' | 'X' | 'n' | 'N' if second == '\'' => {
                return self.constant(quoted(rest, 1, false));
            }
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '$' | '?' if second.is_ascii_digit() => 1 + digits(&rest[1..]),
            '$' => match dollar_quoted(rest) {
                Some(end) => return self.constant(end),
                None => 1,
            },
            '0'..='9' => return self.constant(number(rest)),
            '.' if second.is_ascii_digit() => return self.constant(number(rest)),
            '-' if (second.is_ascii_digit() || second == '.') && self.awaits_operand() => {
                return self.constant(1 + number(&rest[1..]));
            }
            _ if first.is_alphabetic() || first == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        self.written.push_str(&rest[..length]);
        self.rest = &rest[length..];
        true
    }

    fn skip(&mut self, length: usize) -> bool {
        self.rest = &self.rest[length..];
        true
    }

    fn constant(&mut self, length: usize) -> bool {
        self.parameters += 1;
        self.written.push_str(&format!("${}", self.parameters));
        self.skip(length)
    }

    /// Whether what follows is an operand: a minus sign is then that of a number.
    fn awaits_operand(&self) -> bool {
        let before = self.written.trim_end();
        let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        let word = before.get(start..).unwrap_or_default().to_ascii_lowercase();
        match word.is_empty() {
            true => !before.ends_with([')', ']', '"']),
            false => BEFORE_OPERANDS.contains(&word.as_str()),
        }
    }
}

/// The length of a quoted text whose quotation mark is at a position.
fn quoted(text: &str, at: usize, has_escapes: bool) -> usize {
    let bytes = text.as_bytes();
    let mut next = at + 1;
    while let Some(&byte) = bytes.get(next) {
        match byte {
            b'\\' if has_escapes => next += 2,
            b'\'' if bytes.get(next + 1) == Some(&b'\'') => next += 2,
            b'\'' => return next + 1,
            _ => next += 1,
        }
    }
    text.len()
}

/// The length of `$tag$…$tag$`.
fn dollar_quoted(text: &str) -> Option<usize> {
    let end = 1 + text[1..].find('$')?;
    let tag = &text[..=end];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_tag = tag[1..end].chars().all(is_name);
    is_tag.then(|| text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len()))
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// The length of a number at the beginning of a text, also of one such as `1.5e-3` and `0x1F`.
fn number(text: &str) -> usize {
    let mut length = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(text.len());
    let is_exponent = text[..length].ends_with(['e', 'E']) && !text.starts_with("0x");
    if is_exponent && text[length..].starts_with(['+', '-']) {
        length += 1 + digits(&text[length + 1..]);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn constants_become_parameters() {
        let same = |texts: &[&str], expected: &str| {
            texts.iter().for_each(|text| assert_eq!(normalized(text), expected, "{text}"));
        };
        same(
            &[
                "UPDATE a SET b = b + -3000 WHERE c1 = 17;",
                "UPDATE a SET b = b + 12\n  WHERE c1 = 170 -- by key\n;",
                "UPDATE a SET b = b + .5e-3 /* half */ WHERE c1 = 0x1F",
            ],
            "UPDATE a SET b = b + $1 WHERE c1 = $2",
        );
        same(
            &[
                "select 'it''s', E'a\\'b', $q$x'y$q$ from \"t 1\"",
                "select 'b', 'c', '' from \"t 1\"",
                "select 1, -2, 3 from \"t 1\"",
            ],
            "select $1, $2, $3 from \"t 1\"",
        );
        same(&["select x - 1, (y)-2 from t where z = $2"], "select x - $3, (y)-$4 from t where z = $2");
        same(&["select ?1, :x, 'a'"], "select ?1, :x, $1");
        // What does not end, and other scripts.
        same(&["select 'open"], "select $1");
        same(&["select $tag$open"], "select $1");
        same(&["select größe_2 from übung where ä = 'é'"], "select größe_2 from übung where ä = $1");
        same(&["", " ; "], "");
    }
}
