//! The objects of a process.

use std::collections::HashMap;

use events::Object;

/// The most objects of a process; later ones are shown as one below each parent.
const MOST_OBJECTS: usize = 1 << 16;
/// The name of the objects for which there was no room.
const OTHERS: &str = "(others)";
/// The most keys that are kept.
const MOST_KEYS: usize = 1 << 20;
/// The most characters of a name that are shown.
const LONGEST_NAME: usize = 80;

/// The objects of a process. Those that are named alike are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectTable {
    /// Numbered from 1.
    objects: Vec<Object>,
    /// By parent, name and identity.
    numbers: HashMap<(u32, String, Option<u64>), u32>,
    /// How many objects with a parent are shown by a name.
    namesakes: HashMap<(u32, String), u32>,
    /// The objects that exist, by their keys.
    existing: HashMap<u64, u32>,
}

impl ObjectTable {
    /// All objects.
    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The object that has a key.
    pub(crate) fn existing(&self, key: u64) -> Option<u32> {
        self.existing.get(&key).copied()
    }

    /// An object has a key from now on.
    pub(crate) fn begin(&mut self, key: u64, object: u32) {
        if self.existing.len() >= MOST_KEYS {
            self.existing.clear();
        }
        self.existing.insert(key, object);
    }

    /// The object of a key has ended.
    pub(crate) fn end(&mut self, key: u64) {
        self.existing.remove(&key);
    }

    /// The object with a name.
    pub(crate) fn number(&mut self, parent: u32, name: String, identity: Option<u64>) -> u32 {
        let key = (parent, name, identity);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.objects.len() >= MOST_OBJECTS && key.1 != OTHERS {
            // The others of a parent that has none yet are those of the program.
            let others = |parent| self.numbers.get(&(parent, OTHERS.to_string(), None)).copied();
            return others(parent).or(others(0)).unwrap_or_else(|| self.number(0, OTHERS.into(), None));
        }
        let shown = shortened(&key.1);
        let namesakes = self.namesakes.entry((parent, shown.clone())).or_default();
        *namesakes += 1;
        let name = if *namesakes == 1 { shown } else { format!("{shown} ({namesakes})") };
        self.objects.push(Object { parent, name, identity });
        let number = self.objects.len() as u32;
        self.numbers.insert(key, number);
        number
    }
}

/// A name in one line, and not too long.
fn shortened(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
