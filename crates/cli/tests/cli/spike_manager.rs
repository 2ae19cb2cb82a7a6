//! `pathlength spike manager`, in a real browser and by requests that must be refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::spike_environment::Workplace;

/// A manager that answers until this is dropped.
struct Manager {
    process: Child,
    /// Its page.
    address: String,
}

impl Manager {
    fn start(place: &Workplace) -> Manager {
        let mut process = place.command(&["spike", "manager"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("http://"));
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).into();
        Manager { process, address }
    }

    /// The server and the secret of its address.
    fn parts(&self) -> (&str, &str) {
        let rest = self.address.strip_prefix("http://").unwrap();
        let (server, secret) = rest.split_once('/').unwrap();
        (server, secret.trim_end_matches('/'))
    }

    /// The status and the text of an answer to a request.
    fn request(&self, line: &str, headers: &[String], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.parts().0).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A page in a browser without a window, which is driven by the protocol of its developer tools.
struct Browser {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    _profile: TempDir,
}

/// What tests do on the page.
const HELPERS: &str = r#"
    window.confirm = () => true;
    const pause = (time) => new Promise((done) => setTimeout(done, time));
    const until = async (what, is) => {
        for (let times = 0; times < 600; times++) { if (is()) return; await pause(50); }
        throw new Error(`${what} does not happen: ${document.body.innerText}`);
    };
    const text = (id) => document.getElementById(id)?.innerText ?? "";
    const form = (title) => [...document.querySelectorAll("form")].find((one) => one.querySelector("h3")?.innerText === title);
    const send = (one, fields) => {
        for (const [name, value] of Object.entries(fields)) one.elements[name].value = value;
        one.querySelector("button").click();
    };
    const ended = async (number) => {
        await until(`the end of job ${number}`, () => state.jobs.length === number && state.jobs[0].end);
        const { output } = await ask(`jobs/${state.jobs[0].id}`);
        await until("its output", () => document.getElementById("output").textContent === (output || "(no output)"));
        return `${state.jobs[0].end.description}: ${text("output")}`;
    };
"#;

impl Browser {
    fn open(address: &str) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // The tools' pipe is at descriptors 3 and 4.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir=\"$0\" \
            --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut process = Command::new("sh")
            .args(["-c", script])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, answers) =
            (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Browser { process, requests, answers, session: None, last: 0, _profile: profile };
        let target = browser.send("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.send("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().into());
        browser.send("Page.navigate", json!({ "url": address }));
        browser
    }

    fn send(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.requests.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = Vec::new();
            self.answers.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "the browser has ended: is chromium installed (./setup)?");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            // Others are events.
            if answer["id"] == json!(self.last) {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].take();
            }
        }
    }

    /// The value that a piece of a script returns.
    fn evaluate(&mut self, script: &str) -> String {
        let expression = format!("(async () => {{ {HELPERS} {script} }})()");
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.send("Runtime.evaluate", parameters);
        assert_eq!(result["exceptionDetails"], Value::Null, "{script}");
        result["result"]["value"].as_str().unwrap_or_default().into()
    }

    /// Does something that starts a job, and returns how it ended and its output.
    fn job(&mut self, number: usize, action: &str) -> String {
        self.evaluate(&format!("{action}; return await ended({number});"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_browser_does_all_that_the_commands_do() {
    let place = Workplace::new();
    let expected = place.output(&["run", "./sees", "0"]);
    let manager = Manager::start(&place);
    let mut browser = Browser::open(&manager.address);
    let page = browser.evaluate("await until('the page', () => document.readyState === 'complete' && text('database')); return document.body.innerText;");
    assert!(
        page.contains("None is registered yet") && page.contains(place.path("data").to_str().unwrap()),
        "{page}"
    );

    let program = place.path("sees").display().to_string();
    let said = browser.job(
        1,
        &format!("send(document.getElementById('register'), {{ program: {program:?}, name: 'seen' }})"),
    );
    assert!(said.starts_with("done: ") && said.contains("registered 'seen' with 3 images"), "{said}");
    let shown = browser.evaluate("await until('the application', () => text('application').includes('liblinked.so')); return text('application');");
    assert!(shown.contains("not optimizable: has no symbol table"), "{shown}");

    let said = browser.job(2, "send(form('Instrument'), {})");
    assert!(said.contains("liblinked.so: instrumented"), "{said}");
    let folder = place.path("").display().to_string();
    let run = |version: &str| {
        format!(
            "send(document.getElementById('run'), {{ line: \"./sees '0'\", folder: {folder:?}, version: {version:?} }})"
        )
    };
    let said = browser.job(3, &run("collect"));
    assert!(said.contains(&expected) && said.contains("plugin.so: profile of "), "{said}");
    let said = browser.job(4, "send(form('Optimize'), { options: '--blocks ext-tsp' })");
    assert!(said.contains("plugin.so: optimized"), "{said}");
    let shown = browser.evaluate("await until('the gain', () => /Removed by optimization\\s+[0-9.]+ %/.test(text('application'))); return text('applications');");
    assert!(shown.contains("optimized"), "{shown}");
    let said = browser.job(5, &run(""));
    assert!(said.contains(&expected), "{said}");

    let out = place.path("out").display().to_string();
    let file = place.path("out.profile").display().to_string();
    let said = browser.job(6, &format!("send(form('Export'), {{ folder: {out:?}, profile: {file:?} }})"));
    assert!(
        said.starts_with("done: ") && place.path("out/sees").exists() && place.path("out.profile").exists(),
        "{said}"
    );
    let said = browser.job(7, "[...document.querySelectorAll('.versions button')][0].click()");
    assert!(said.starts_with("done: "), "{said}");
    browser.evaluate("await until('the choice', () => state.applications[0].phase === 'original')");
    let said = browser.job(8, "document.getElementById('collect').click()");
    assert!(said.starts_with("done: "), "{said}");

    // Mistakes are shown, and a job that takes long can be stopped.
    let said =
        browser.job(9, "send(document.getElementById('register'), { program: '/no/program', name: '' })");
    assert!(said.starts_with("failed: exit status 1: ") && said.contains("there is no such file"), "{said}");
    let shown = browser.evaluate("send(document.getElementById('run'), { line: \"'\", folder: '', version: '' }); await until('the complaint', () => text('problem')); return text('problem');");
    assert!(shown.contains("quotation mark is missing"), "{shown}");
    let said = browser.job(10, "send(document.getElementById('run'), { line: 'sleep 1000', folder: '', version: '' }); await until('the start', () => state.jobs.length === 10); await until('the button', () => document.querySelector('#list button')); document.querySelector('#list button').click()");
    assert!(said.starts_with("ended by signal 15"), "{said}");

    let said = browser.job(11, "send(form('Remove'), {})");
    assert!(said.starts_with("done: "), "{said}");
    browser.evaluate("await until('the removal', () => text('applications').includes('None is registered'))");
    assert_eq!(place.output(&["spike", "list", "--format", "csv"]).lines().count(), 1);
}

#[test]
fn others_are_kept_out() {
    let place = Workplace::new();
    let manager = Manager::start(&place);
    let (server, secret) = manager.parts();
    let host = format!("Host: {server}");
    let collect = r#"{"command":"collect","line":"","folder":""}"#;
    let get = format!("GET /{secret}/state");
    let post = format!("POST /{secret}/jobs");
    let origin = |origin: &str| format!("Origin: {origin}");
    let own = origin(&format!("http://{server}"));
    let allowed = [
        (&get, vec![host.clone()]),
        (&get, vec![host.clone(), own.clone()]),
        (&post, vec![host.clone(), own.clone()]),
    ];
    for (line, headers) in allowed {
        assert_eq!(manager.request(line, &headers, collect).0, 200, "{line} {headers:?}");
    }
    let port = server.split(':').nth(1).unwrap();
    let refused = [
        ("GET /state".into(), vec![host.clone()]),
        ("GET /".into(), vec![host.clone()]),
        (format!("GET /{}/state", "0".repeat(secret.len())), vec![host.clone()]),
        (format!("GET /{}/state", &secret[1..]), vec![host.clone()]),
        (get.clone(), vec![format!("Host: example.org:{port}")]),
        (get.clone(), vec![host.clone(), origin("http://example.org")]),
        (post.clone(), vec![host.clone()]),
        (post.clone(), vec![host.clone(), origin("null")]),
        (post.clone(), vec![host.clone(), origin(&format!("http://example.org:{port}"))]),
        (
            post.clone(),
            vec![format!("Host: example.org:{port}"), origin(&format!("http://example.org:{port}"))],
        ),
    ];
    for (line, headers) in refused {
        let (status, answer) = manager.request(&line, &headers, collect);
        assert_eq!(status, 403, "{line} {headers:?}");
        assert!(!answer.contains(secret) && !answer.contains("applications"), "{answer}");
    }
    let headers = [host.clone(), own];
    let (status, answer) = manager.request(&post, &headers, r#"{"command":"shell"}"#);
    assert!(status == 400 && answer.contains("unknown variant"), "{answer}");
    assert_eq!(manager.request(&format!("GET /{secret}/jobs/77"), &headers, "").0, 404);
    assert_eq!(manager.request(&format!("GET /{secret}/../secret"), &headers, "").0, 404);
    let (_, page) = manager.request(&format!("GET /{secret}/"), &headers, "");
    assert!(page.contains("default-src 'self'") && page.contains("no-referrer"), "{page}");
}
