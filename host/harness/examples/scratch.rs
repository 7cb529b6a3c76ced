fn main() {
    let mut options = reeve_harness::Options::default();
    for arg in std::env::args().skip(1) {
        match arg.split_once('=') {
            Some(("--filter", f)) => options.filter = Some(f.into()),
            Some(("--cache", f)) => options.cache = Some(f.into()),
            Some(("--component", f)) => options.component = Some(f.into()),
            Some(("--threads", f)) => options.threads = f.parse().ok(),
            None if arg == "--update" => options.update = true,
            _ => options.paths.push(arg.into()),
        }
    }
    let printer = reeve_harness::Printer { colour: false };
    match reeve_harness::run(&options, |s| print!("{}", printer.scenario(s))) {
        Ok(report) => print!("{}", printer.summary(&report)),
        Err(error) => {
            println!("{error}: {:?}", std::error::Error::source(&error));
        }
    }
}
