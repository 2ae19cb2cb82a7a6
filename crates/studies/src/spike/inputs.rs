//! Inputs of the programs, made from a seed: text, JSON, C, sound. The same seed makes the same bytes everywhere.

use std::fmt::Write;

/// What an input file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// What stands here, such as a script.
    Text(&'static str),
    /// So many lines of sentences, of words as frequent as those of a language.
    Prose(u32),
    /// So many records in JSON, one a line.
    Json(u32),
    /// A program in C with so many functions.
    C(u32),
    /// So many samples of 16 bits, of notes that fade.
    Sound(u32),
    /// So many transactions of TPC-B in SQL, a statement a line, on a branch with 20,000 accounts; and the sums at the end.
    Transactions(u32),
}

/// An input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedInput {
    /// Its name.
    pub name: &'static str,
    /// What it has.
    pub content: Content,
    /// What its random numbers begin with.
    pub seed: u64,
}

impl GeneratedInput {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut random = Random(self.seed);
        match self.content {
            Content::Text(text) => text.into(),
            Content::Prose(lines) => prose(&mut random, lines).into(),
            Content::Json(records) => json(&mut random, records).into(),
            Content::C(functions) => c_program(&mut random, functions).into(),
            Content::Sound(samples) => sound(&mut random, samples),
            Content::Transactions(number) => transactions(&mut random, number).into(),
        }
    }
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// How many words there are.
const WORDS: u64 = 4000;

/// A word: the smaller its number the more frequent, about as one divided by the number.
fn word(random: &mut Random) -> String {
    // The bound itself is random, so that small numbers come up most.
    let bound = 1 + random.below(WORDS);
    let mut number = random.below(bound) + 1;
    let mut word = String::new();
    while number > 0 {
        const SYLLABLES: [&str; 24] = [
            "a", "the", "re", "in", "to", "con", "ver", "is", "al", "en", "ter", "ma", "o", "ly", "ing",
            "tion", "per", "su", "ca", "ti", "de", "ble", "no", "sta",
        ];
        word.push_str(SYLLABLES[(number % SYLLABLES.len() as u64) as usize]);
        number /= SYLLABLES.len() as u64;
    }
    word
}

fn prose(random: &mut Random, lines: u32) -> String {
    let mut text = String::new();
    for _ in 0..lines {
        for at in 0..6 + random.below(8) {
            let gap = if at == 0 { "" } else { random.pick(&[" ", " ", " ", " ", " ", ", ", ". "]) };
            text.push_str(gap);
            text.push_str(&word(random));
        }
        text.push_str(".\n");
    }
    text
}

fn json(random: &mut Random, records: u32) -> String {
    let mut text = String::new();
    for number in 0..records {
        let price = random.below(100_000);
        let (tags, town, name) = (random.below(4), word(random), word(random));
        let tags: Vec<String> = (0..tags).map(|_| format!("\"{}\"", word(random))).collect();
        _ = writeln!(
            text,
            "{{\"id\": {number}, \"name\": \"{name}\", \"town\": \"{town}\", \"price\": {}.{:02}, \"tags\": [{}], \
             \"stock\": {{\"count\": {}, \"ordered\": {}}}}}",
            price / 100,
            price % 100,
            tags.join(", "),
            random.below(500),
            random.pick(&["true", "false", "null"])
        );
    }
    text
}

fn c_program(random: &mut Random, functions: u32) -> String {
    let mut text =
        String::from("typedef struct { int key; long sum; char name[16]; } Item;\nstatic Item items[64];\n");
    for number in 0..functions {
        let (limit, step) = (2 + random.below(60), 1 + random.below(7));
        _ = writeln!(
            text,
            "static long f{number}(long a, long b)\n{{\n    long i, s = {};",
            random.below(1000)
        );
        for _ in 0..2 + random.below(4) {
            let operator = random.pick(&["+", "-", "^", "*", "|"]);
            let compared = random.pick(&["<", ">", "==", "!="]);
            match random.below(4) {
                0 => {
                    _ = writeln!(
                        text,
                        "    for (i = 0; i < {limit}; i += {step})\n        s = s {operator} (a + i * b);"
                    )
                }
                1 => {
                    _ = writeln!(
                        text,
                        "    if (a {compared} s)\n        s {operator}= b;\n    else\n        a = s >> 3;"
                    )
                }
                2 => {
                    _ = writeln!(
                        text,
                        "    items[s & 63].key = (int)(a {operator} {step});\n    items[s & 63].sum += s;"
                    );
                }
                _ => {
                    let cases = 3 + random.below(5);
                    _ = writeln!(text, "    switch (s & 7) {{");
                    for case in 0..cases {
                        _ = writeln!(text, "    case {case}: s {operator}= {}; break;", random.below(100));
                    }
                    _ = writeln!(text, "    default: s++;\n    }}");
                }
            }
        }
        if number > 0 {
            _ = writeln!(text, "    if (s & 1)\n        s += f{}(s >> 1, b);", random.below(number.into()));
        }
        _ = writeln!(text, "    return s;\n}}\n");
    }
    _ = writeln!(text, "int main(void)\n{{\n    return (int)f{}(1, 2) & 127;\n}}", functions - 1);
    text
}

fn transactions(random: &mut Random, number: u32) -> String {
    let mut text = String::new();
    for _ in 0..number {
        let (account, teller) = (1 + random.below(20_000), 1 + random.below(10));
        let delta = random.below(10_001) as i64 - 5000;
        _ = writeln!(
            text,
            "BEGIN\n\
             UPDATE accounts SET abalance = abalance + {delta} WHERE aid = {account}\n\
             SELECT abalance FROM accounts WHERE aid = {account}\n\
             UPDATE tellers SET tbalance = tbalance + {delta} WHERE tid = {teller}\n\
             UPDATE branches SET bbalance = bbalance + {delta} WHERE bid = 1\n\
             INSERT INTO history (tid, bid, aid, delta, mtime) \
             VALUES ({teller}, 1, {account}, {delta}, CURRENT_TIMESTAMP)\n\
             END"
        );
    }
    text + "SELECT sum(abalance), count(*) FROM accounts\nSELECT sum(delta), count(*) FROM history\n"
}

/// Each note is a resonator: a sum and a product a sample, which no mathematical library computes otherwise elsewhere.
fn sound(random: &mut Random, samples: u32) -> Vec<u8> {
    const NOTE: u32 = 6000;
    let mut bytes = Vec::new();
    let mut voices = [(0.0f64, 0.0f64, 0.0f64); 4];
    for at in 0..samples {
        if at % NOTE == 0 {
            for voice in &mut voices {
                // Twice the cosine of the angle of a sample, by which the frequency is given.
                *voice =
                    (0.0, 800.0 + random.below(2500) as f64, 1.999 - random.below(400) as f64 / 10_000.0);
            }
        }
        let mut sum = random.below(200) as f64 - 100.0;
        for (older, newer, twice_cosine) in &mut voices {
            let next = *twice_cosine * *newer - *older;
            (*older, *newer) = (*newer, 0.999_95 * next);
            sum += *newer;
        }
        bytes.extend((sum.clamp(-30_000.0, 30_000.0) as i16).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_depend_on_their_seeds_only() {
        for content in [
            Content::Prose(50),
            Content::Json(50),
            Content::C(20),
            Content::Sound(9000),
            Content::Transactions(9),
        ] {
            let made = |seed| GeneratedInput { name: "", content, seed }.bytes();
            assert_eq!(made(1), made(1));
            assert_ne!(made(1), made(2));
        }
    }

    #[test]
    fn json_is_json() {
        let text =
            String::from_utf8(GeneratedInput { name: "", content: Content::Json(30), seed: 1 }.bytes())
                .unwrap();
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert_eq!(text.lines().count(), 30);
    }
}
