use pathlength_spike as spike;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let p = spike::optimize::open(a[1].as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let counts = format!("{}.counts", std::path::absolute(&a[2]).unwrap().display());
    let i = spike::instrument::instrument(p, counts.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    println!("{:?}", i.summary);
    std::fs::write(&a[2], &i.bytes).unwrap();
    std::fs::write(&counts, &i.counts).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&a[2], std::fs::Permissions::from_mode(0o755)).unwrap();
}
