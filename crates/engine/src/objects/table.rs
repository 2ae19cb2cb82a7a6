//! The objects of a process.

use std::collections::{HashMap, HashSet};

use events::{LABELS, Object};

/// The most objects of a process; later ones are shown as one below each parent.
const MOST_OBJECTS: usize = 1 << 16;
/// The name of the objects for which there was no room.
const OTHERS: &str = "(others)";
/// The most keys that are kept.
const MOST_KEYS: usize = 1 << 20;

/// The objects of a process. Those that are named alike are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectTable {
    /// Numbered from 1.
    objects: Vec<Object>,
    /// By parent, name and identity.
    numbers: HashMap<(u32, String, Option<u64>), u32>,
    /// How many objects with a parent are shown by a name.
    namesakes: HashMap<(u32, String), u32>,
    /// By number, less 1, what objects were called before they were shown.
    names: Vec<String>,
    /// The objects that exist, by their keys.
    existing: HashMap<u64, u32>,
    /// Numbers that have labels.
    labelled: HashSet<u64>,
}

impl ObjectTable {
    /// All objects.
    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The object with a name for a call in one for another object: the same if it has that name.
    pub(crate) fn inside(&mut self, current: u32, name: String) -> u32 {
        match (current as usize).checked_sub(1).is_some_and(|index| self.names[index] == name) {
            true => current,
            false => self.number(current, name, None),
        }
    }

    /// Whether a number has a label.
    pub(crate) fn has_label(&self, number: u64) -> bool {
        self.labelled.contains(&number) || self.labelled.len() >= MOST_OBJECTS
    }

    /// Gives a number a label.
    pub(crate) fn label(&mut self, number: u64, name: String) {
        self.labelled.insert(number);
        self.objects.push(Object { parent: LABELS, name, identity: Some(number) });
        self.names.push(String::new());
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

    /// The lock with a name. Those with different identities are shown as one.
    pub(crate) fn lock(&mut self, name: String, identity: Option<u64>) -> u32 {
        if let Some(&number) = self.numbers.get(&(0, name.clone(), identity)) {
            return number;
        }
        // Without room for more, locks of the name are one.
        let identity = identity.filter(|_| self.objects.len() < MOST_OBJECTS);
        match identity {
            Some(_) => self.add(0, in_one_line(&name), (0, name, identity)),
            None => self.number(0, name, None),
        }
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
        let shown = in_one_line(&key.1);
        let namesakes = self.namesakes.entry((parent, shown.clone())).or_default();
        *namesakes += 1;
        let name = if *namesakes == 1 { shown } else { format!("{shown} ({namesakes})") };
        self.add(parent, name, key)
    }

    fn add(&mut self, parent: u32, name: String, key: (u32, String, Option<u64>)) -> u32 {
        self.objects.push(Object { parent, name, identity: key.2 });
        self.names.push(key.1.clone());
        let number = self.objects.len() as u32;
        self.numbers.insert(key, number);
        number
    }
}

/// A name in one line.
fn in_one_line(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}
