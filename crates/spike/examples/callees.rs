#![allow(missing_docs)]
use pathlength_spike as spike;
use spike::program::*;
use std::collections::BTreeMap;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut p = spike::optimize::open(a[1].as_ref()).unwrap();
    let prof = spike::profile::Profile::open(a[2].as_ref()).unwrap();
    let calls = spike::optimize::find(&prof, &p).unwrap().apply(&mut p);
    let mut direct: BTreeMap<usize, (u64, usize, u64)> = BTreeMap::new();
    let mut total = 0;
    let mut exec = vec![0u64; p.procedures.len()];
    let mut hascall = vec![0u64; p.procedures.len()];
    for b in &p.blocks {
        total += b.count * b.instructions.len() as u64;
        exec[b.procedure as usize] += b.count * b.instructions.iter().filter(|i| !i.is_nop()).count() as u64;
        if let Some(c) = b.call() {
            hascall[b.procedure as usize] += b.count;
            if let Reference::Branch(Target::Block(t)) = c.reference {
                let e = direct.entry(p.blocks[t as usize].procedure as usize).or_default();
                e.0 += b.count;
                e.1 += 1;
                e.2 = e.2.max(b.count);
            }
        }
    }
    let mut ind: BTreeMap<usize, u64> = BTreeMap::new();
    for c in &calls {
        *ind.entry(c.procedure as usize).or_default() += c.count;
    }
    let mut v: Vec<_> = direct.iter().collect();
    v.sort_by_key(|e| std::cmp::Reverse(e.1.0));
    for (q, (n, sites, max)) in v.iter().take(50) {
        println!(
            "{:7} calls {:.3}% sites {sites} max site {max} indirect {} len {:.1} calls/call {:.2} {}",
            n,
            *n as f64 * 100.0 / total as f64,
            ind.get(q).unwrap_or(&0),
            exec[**q] as f64 / (*n + ind.get(q).unwrap_or(&0)) as f64,
            hascall[**q] as f64 / *n as f64,
            p.procedures[**q].name
        );
    }
    println!("only indirect:");
    let mut v: Vec<_> = ind.iter().filter(|e| !direct.contains_key(e.0)).collect();
    v.sort_by_key(|e| std::cmp::Reverse(*e.1));
    for (q, n) in v.iter().take(25) {
        println!(
            "{n} {:.3}% len {:.1} calls/call {:.2} {}",
            **n as f64 * 100.0 / total as f64,
            exec[**q] as f64 / **n as f64,
            hascall[**q] as f64 / **n as f64,
            p.procedures[**q].name
        );
    }
}
