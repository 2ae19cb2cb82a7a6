#![allow(missing_docs)]
use pathlength_spike as spike;
use spike::program::*;
use std::collections::BTreeMap;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut p = spike::optimize::open(a[1].as_ref()).unwrap();
    let prof = spike::profile::Profile::open(a[2].as_ref()).unwrap();
    let calls = spike::optimize::find(&prof, &p).unwrap().apply(&mut p);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0u64;
    let mut per: Vec<(u64, String, Option<Frozen>, u64, u64)> =
        p.procedures.iter().map(|q| (0, q.name.clone(), q.frozen, 0, 0)).collect();
    for b in &p.blocks {
        let c = b.count;
        if c == 0 {
            continue;
        }
        let q = b.procedure as usize;
        for i in &b.instructions {
            total += c;
            per[q].0 += c;
            let d = isa::decode(i.word).unwrap();
            if i.is_nop() {
                *kinds.entry("nop").or_default() += c;
                continue;
            }
            match i.reference {
                Reference::GlobalPointerHigh(n) | Reference::GlobalPointerLow(n) => {
                    let k = match p.global_pointers[n as usize].base {
                        Base::Block(_) => "gp entry",
                        Base::AfterCall(_) => "gp after call",
                    };
                    *kinds.entry(k).or_default() += c;
                    continue;
                }
                Reference::Slot(_) => {
                    *kinds.entry("got load").or_default() += c;
                    continue;
                }
                _ => {}
            }
            if i.is_call() {
                *kinds.entry(if d.op == isa::Op::Bsr { "bsr" } else { "jsr" }).or_default() += c;
                if d.op == isa::Op::Bsr {
                    if let Reference::Branch(Target::Block(t)) = i.reference {
                        let tp = p.blocks[t as usize].procedure as usize;
                        per[tp].3 += c;
                    }
                }
                continue;
            }
            if d.op == isa::Op::Ret {
                *kinds.entry("ret").or_default() += c;
                continue;
            }
            if d.rb() == 30 && d.op.format() == isa::Format::Memory {
                let ra = d.ra();
                let k = if d.op == isa::Op::Lda && ra == 30 {
                    "sp adjust"
                } else if matches!(d.op, isa::Op::Stq | isa::Op::Ldq) && ((9..=15).contains(&ra) || ra == 26)
                {
                    per[q].4 += c;
                    if d.op == isa::Op::Stq { "save" } else { "restore" }
                } else {
                    "stack other"
                };
                *kinds.entry(k).or_default() += c;
                continue;
            }
            if d.op == isa::Op::Bis && (d.ra() == 31 || d.ra() == d.rb()) && d.literal().is_none() {
                *kinds.entry("mov").or_default() += c;
                continue;
            }
            if d.op == isa::Op::Bis && d.ra() == 31 {
                *kinds.entry("mov").or_default() += c;
                continue;
            }
            if d.op == isa::Op::Lda && d.rb() == 31 {
                *kinds.entry("lda const").or_default() += c;
                continue;
            }
            *kinds.entry("rest").or_default() += c;
        }
        match b.exit {
            Exit::Branch { .. } => {
                total += c;
                *kinds.entry("br").or_default() += c
            }
            Exit::Conditional { .. } => {
                total += c;
                *kinds.entry("cond").or_default() += c
            }
            _ => {}
        }
    }
    for (k, v) in &kinds {
        println!("{k:16} {v:12} {:.2}%", *v as f64 * 100.0 / total as f64);
    }
    println!("total {total}  indirect calls {}", calls.iter().map(|c| c.count).sum::<u64>());
    per.sort();
    per.reverse();
    for (c, n, f, calls, sr) in per.iter().take(45) {
        println!(
            "{:5.2}% {n} {f:?} calls {calls} saves/restores {:.2}%",
            *c as f64 * 100.0 / total as f64,
            *sr as f64 * 100.0 / total as f64
        );
    }
}
