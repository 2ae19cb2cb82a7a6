#![allow(missing_docs)]
use pathlength_spike as spike;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut p = spike::optimize::open(a[1].as_ref()).unwrap();
    let prof = spike::profile::Profile::open(a[2].as_ref()).unwrap();
    let calls = spike::optimize::find(&prof, &p).unwrap().apply(&mut p);
    if let Ok(seed) = std::env::var("RANDOM") {
        let mut r = fastrand::Rng::with_seed(seed.parse().unwrap());
        for b in &mut p.blocks {
            b.count = [0, 1, 1000, 1000, 1_000, 1010][r.usize(..6)];
            let c = b.count;
            if let spike::program::Exit::Conditional { count, .. } = &mut b.exit { *count = if c == 0 { 0 } else { r.u64(..=c) }; }
        }
    }
    let t = std::time::Instant::now();
    let o = spike::optimize::optimize(
        p,
        &calls,
        spike::optimize::Options { hot_cold: std::env::var("NOHC").is_err(), ..Default::default() },
    )
    .unwrap();
    eprintln!("{:?}", t.elapsed());
    let total: u64 = o.outcomes.iter().map(|o| o.executed).sum();
    for c in spike::hot_cold::Category::ALL {
        let s: Vec<_> = o.outcomes.iter().filter(|o| o.category == c).collect();
        println!(
            "{:12} {:5} {:.2}%",
            c.name(),
            s.len(),
            s.iter().map(|o| o.executed).sum::<u64>() as f64 * 100.0 / total as f64
        );
    }
    let r = |f: fn(&spike::hot_cold::Reduction) -> u64| {
        o.outcomes.iter().map(|o| f(&o.reduction)).sum::<u64>() as f64 * 100.0 / total as f64
    };
    println!(
        "dead {:.2}% saves {:.2}% sp {:.2}% peep {:.2}% inline {:.2}%",
        r(|r| r.dead_code),
        r(|r| r.saves),
        r(|r| r.adjustments),
        r(|r| r.peephole),
        r(|r| r.inlining)
    );
    if std::env::var("V").is_ok() {
        let mut v: Vec<_> = o.outcomes.iter().collect();
        v.sort_by_key(|o| std::cmp::Reverse(o.executed));
        for o1 in v.iter().take(60) {
            println!(
                "{:.2}% {} {:?} {:?} size {} hot {} stub {}",
                o1.executed as f64 * 100.0 / total as f64,
                o.program.procedures[o1.procedure as usize].name,
                o1.category,
                o1.reduction,
                o1.size,
                o1.hot_size,
                o1.stub_size
            );
        }
    }
    std::fs::write(&a[3], o.bytes).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&a[3], std::fs::Permissions::from_mode(0o755)).unwrap();
}
