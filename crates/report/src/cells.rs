//! How a cell and a heading look to people, in a terminal and in a page alike.

use table::{Column, Kind, Value, separated};

/// What stands for a value that is not known.
const DASH: &str = "–";

/// The heading with its unit, which the cells leave out.
pub(crate) fn heading(column: &Column) -> String {
    let percent = matches!(column.kind, Kind::Percent(_) | Kind::Change(_));
    let unit = if percent && !column.name.contains('%') { " (%)" } else { "" };
    text::printable(&column.name).into_owned() + unit
}

/// Whether the column is aligned right.
pub(crate) fn is_number(kind: Kind) -> bool {
    !matches!(kind, Kind::Text | Kind::Code)
}

/// The text of a value of this kind.
pub(crate) fn text(value: &Value, kind: Kind) -> String {
    let number = match value {
        Value::Text(text) => return text::printable(text).into_owned(),
        Value::Integer(address) if kind == Kind::Address => return format!("{address:#x}"),
        Value::Integer(number) if decimals(kind) == 0 => number.to_string(),
        Value::Integer(number) => format!("{:.*}", decimals(kind), *number as f64),
        Value::Real(number) if number.is_finite() => format!("{number:.*}", decimals(kind)),
        Value::Real(_) | Value::Missing => return DASH.into(),
    };
    let signed = matches!(kind, Kind::Delta | Kind::Change(_));
    separate(&number, signed)
}

fn decimals(kind: Kind) -> usize {
    match kind {
        Kind::Real(decimals) | Kind::Percent(decimals) | Kind::Change(decimals) => decimals.into(),
        Kind::Text | Kind::Code | Kind::Count | Kind::Delta | Kind::Address => 0,
    }
}

/// Thousands separators into a decimal number. What rounds to zero has no sign.
fn separate(number: &str, signed: bool) -> String {
    let digits = number.trim_start_matches('-');
    let zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = match number.starts_with('-') {
        _ if zero => "",
        true => "-",
        false if signed => "+",
        false => "",
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    format!("{sign}{}{fraction}", separated(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_decide_how_values_look() {
        for (value, kind, expected) in [
            (Value::Integer(1_234_567), Kind::Count, "1,234,567"),
            (Value::Integer(999), Kind::Count, "999"),
            (Value::Integer(1000), Kind::Delta, "+1,000"),
            (Value::Integer(-1000), Kind::Delta, "-1,000"),
            (Value::Integer(0), Kind::Delta, "0"),
            (Value::Integer(i64::MIN), Kind::Delta, "-9,223,372,036,854,775,808"),
            (Value::Real(58_812.345), Kind::Real(2), "58,812.35"),
            (Value::Integer(3), Kind::Real(1), "3.0"),
            (Value::Real(12.5), Kind::Percent(1), "12.5"),
            (Value::Real(-5.44), Kind::Change(1), "-5.4"),
            (Value::Real(5.44), Kind::Change(1), "+5.4"),
            (Value::Real(-0.01), Kind::Change(1), "0.0"),
            (Value::Real(f64::NAN), Kind::Real(1), "–"),
            (Value::Missing, Kind::Text, "–"),
            (Value::Integer(0x1_2000_0000), Kind::Address, "0x120000000"),
            ("\u{1b}[2Jclear\n".into(), Kind::Text, "\u{fffd}[2Jclear\u{fffd}"),
        ] {
            assert_eq!(text(&value, kind), expected, "{value:?} as {kind:?}");
        }
    }

    proptest! {
        #[test]
        fn separators_lose_nothing(number: i64) {
            let shown = text(&Value::Integer(number), Kind::Delta);
            prop_assert_eq!(shown.replace(',', "").parse::<i64>().unwrap(), number);
            let groups: Vec<_> = shown.trim_start_matches(['+', '-']).split(',').collect();
            prop_assert!(groups[1..].iter().all(|group| group.len() == 3));
        }
    }
}
