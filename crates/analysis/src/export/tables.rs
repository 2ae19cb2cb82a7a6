//! The blocks and functions that the instructions of a trace refer to, as tables.

use crate::replay::Dictionary;
use table::{Kind, Table, Value};

/// The blocks: number, where each is, and where its first instruction comes from.
pub fn blocks(dictionary: &Dictionary) -> Table {
    let columns = [
        ("block", Kind::Count),
        ("address", Kind::Address),
        ("instructions", Kind::Count),
        ("function", Kind::Text),
        ("image", Kind::Text),
        ("file", Kind::Text),
        ("line", Kind::Count),
    ];
    let mut table = Table::new("blocks", "Blocks of instructions", &columns);
    for (id, (block, facts)) in dictionary.trace.blocks().iter().zip(&dictionary.blocks).enumerate() {
        let region = &dictionary.regions[facts.region as usize];
        let location = dictionary.names.location(block.image, block.address);
        table.row(vec![
            (id as u64).into(),
            Value::Integer(block.address.cast_signed()),
            facts.length().into(),
            region.name.as_ref().map(|name| name.function.clone()).into(),
            region.image.clone().into(),
            location.as_ref().map(|location| location.file.clone()).into(),
            location.and_then(|location| location.line).map(u64::from).into(),
        ]);
    }
    table
}

/// The functions that blocks belong to.
pub fn functions(dictionary: &Dictionary) -> Table {
    let columns = [("function", Kind::Text), ("image", Kind::Text), ("address", Kind::Address)];
    let mut table = Table::new("functions", "Functions", &columns);
    for region in &dictionary.regions {
        let Some(name) = &region.name else { continue };
        let address = Value::Integer(region.start.cast_signed());
        table.row(vec![name.function.clone().into(), region.image.clone().into(), address]);
    }
    table
}
