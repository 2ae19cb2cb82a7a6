//! Structures in the memory of a program that runs already: lists that the program keeps of what it has allocated, such as an index of
//! shared memory.

use events::LoadedImage;
use events::record::Heap;
use guest_memory::Memory;
use image::{CallState, CompiledExpression, EvaluationPoint, ExpressionTypes, Image};
use serde::{Deserialize, Serialize};

use super::rules::{NameTemplate, TextExpression};
use super::site::{CompiledTemplate, template};
use crate::program_location::Name;

/// The most lists of a rule, and the most elements of a list: a damaged list may go round.
const MOST: u64 = 1 << 12;

/// Lists whose elements describe structures. Expressions are evaluated as if at the entry of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructureRule {
    /// The function, `name` or `image!name`: its image has the lists, and it has an argument.
    function: Name,
    /// The number of lists, of which `$i` is one, from 0.
    lists: TextExpression,
    /// The first element of list `$i`; 0 if the list is empty.
    first: TextExpression,
    /// The element after element `$1`; 0 after the last one.
    next: TextExpression,
    /// The structure's address.
    address: TextExpression,
    /// The structure's bytes.
    size: TextExpression,
    name: NameTemplate,
}

/// The compiled expressions of a rule.
#[derive(Clone, Debug)]
struct StructureSite {
    lists: CompiledExpression,
    first: CompiledExpression,
    next: CompiledExpression,
    address: CompiledExpression,
    size: CompiledExpression,
    name: CompiledTemplate,
}

/// The rules that fit the images of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct StructureSites(Vec<StructureSite>);

/// An element of a list.
#[derive(Clone, Copy)]
struct ListElement<'m> {
    memory: &'m Memory,
    list: u64,
    element: u64,
}

impl CallState for ListElement<'_> {
    fn argument(&self, _: usize) -> u64 {
        self.element
    }

    fn index(&self) -> u64 {
        self.list
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.memory.read(address, bytes).is_ok()
    }

    fn text(&self, address: u64, limit: usize) -> Option<Vec<u8>> {
        self.memory.read_string(address, limit).ok()?
    }
}

impl StructureSites {
    /// An image was mapped. Rules that do not fit its types find nothing.
    pub(crate) fn mapped(&mut self, rules: &[StructureRule], image: &LoadedImage, file: &Image) {
        let of_image = rules.iter().filter(|rule| rule.function.may_be_in(image));
        let found = of_image.filter_map(|rule| {
            let mut symbols = rule.function.symbols_in(file).into_iter().filter(|symbol| symbol.function);
            Some((rule, EvaluationPoint { function: symbols.next()?.address, instruction: None }))
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return;
        }
        let all = found.iter().flat_map(|(rule, at)| {
            let plain = [&rule.lists, &rule.first, &rule.next, &rule.address, &rule.size];
            plain.map(|one| &one.1).into_iter().chain(rule.name.expressions()).map(move |one| (*at, one))
        });
        let mut compiled = ExpressionTypes::new(file, image.bias).compile(all).into_iter().map(Result::ok);
        let site = |(rule, _): &(&StructureRule, EvaluationPoint)| {
            let mut next = || compiled.next().flatten();
            let [lists, first, following, address, size] = [(); 5].map(|()| next());
            let name = template(&rule.name, &mut next);
            let (next, address) = (following?, address?);
            Some(StructureSite { lists: lists?, first: first?, next, address, size: size?, name })
        };
        self.0.extend(found.iter().filter_map(site));
    }

    /// The events of all structures.
    pub(crate) fn blocks(&self, memory: &Memory) -> Vec<Heap> {
        let mut blocks = Vec::new();
        for site in &self.0 {
            let at = |list, element| ListElement { memory, list, element };
            let lists = site.lists.value(&at(0, 0)).unwrap_or(0).min(MOST);
            for list in 0..lists {
                let mut element = site.first.value(&at(list, 0)).unwrap_or(0);
                for _ in 0..MOST {
                    if element == 0 {
                        break;
                    }
                    let state = at(list, element);
                    let (address, size) = (site.address.value(&state), site.size.value(&state));
                    if let (Some(address), Some(size), Some(name)) = (address, size, site.name.text(&state)) {
                        blocks.extend(Heap::named_block(&name, address, size));
                    }
                    element = site.next.value(&state).unwrap_or(0);
                }
            }
        }
        blocks
    }
}
