use pathlength_spike as spike;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&a[1]).unwrap();
    let t = std::time::Instant::now();
    let mut p = spike::lift::lift(bytes).unwrap_or_else(|e| panic!("{e}"));
    eprintln!("lift {:?}", t.elapsed());
    let mut reasons = std::collections::BTreeMap::new();
    for q in &p.procedures {
        if let Some(f) = q.frozen {
            *reasons.entry(f).or_insert(0) += 1;
            if std::env::var("V").is_ok() {
                eprintln!("frozen {} {:?}", q.name, f)
            }
        }
    }
    eprintln!(
        "{} procedures {} blocks {} instructions, frozen {:?}",
        p.procedures.len(),
        p.blocks.len(),
        p.instructions(),
        reasons
    );
    if let Ok(seed) = std::env::var("SHUFFLE") {
        let _ = &mut p;
        let mut r = fastrand::Rng::with_seed(seed.parse().unwrap());
        let mut l = spike::layout::original(&p);
        r.shuffle(&mut l.fragments);
        for f in &mut l.fragments {
            if p.procedures[f.procedure as usize].frozen.is_none() {
                r.shuffle(&mut f.blocks);
            }
        }
        let (b, _) = spike::output::write(&p, &l).unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(&a[2], b).unwrap();
    } else {
        let l = spike::layout::original(&p);
        let (b, _) = spike::output::write(&p, &l).unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(&a[2], b).unwrap();
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&a[2], std::fs::Permissions::from_mode(0o755)).unwrap();
    eprintln!("total {:?}", t.elapsed());
}
