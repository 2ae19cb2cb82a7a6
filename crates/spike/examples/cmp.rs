use pathlength_spike as spike;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let open = || spike::optimize::open(a[1].as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let plan = spike::instrument::Plan::new(open()).unwrap_or_else(|e| panic!("{e}"));
    let mut mine = open();
    let mut theirs = open();
    let counts = std::fs::read(&a[2]).unwrap();
    let calls = plan.apply(&counts, &mut mine).unwrap_or_else(|e| panic!("{e}"));
    let profile = spike::profile::Profile::open(a[3].as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let image = spike::optimize::find(&profile, &theirs).unwrap();
    let their_calls = image.apply(&mut theirs);
    let (mut same, mut different, mut executed, mut frozen) = (0, 0, 0u64, 0u64);
    for p in &mine.procedures {
        for (&b, n) in p.blocks.iter().zip(0..) {
            let (x, y) = (&mine.blocks[b as usize], &theirs.blocks[b as usize]);
            if p.frozen.is_some() {
                frozen += y.count * y.instructions.len() as u64;
                continue;
            }
            executed += y.count * (y.instructions.len() as u64);
            if x.count == y.count && x.exit == y.exit {
                same += 1
            } else {
                different += 1;
                if different < 20 {
                    println!(
                        "{} block {n}: {} {:?}\n   engine {} {:?}",
                        p.name, x.count as i64, x.exit, y.count, y.exit
                    );
                }
            }
        }
    }
    let same_calls = calls.iter().filter(|c| their_calls.contains(c)).count();
    println!(
        "same {same} different {different}; calls {} {} same {same_calls}; executed {executed} frozen {frozen}",
        calls.len(),
        their_calls.len()
    );
}
