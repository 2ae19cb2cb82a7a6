//! Requests and their answers.

use std::io::{Cursor, Read};

use serde::Serialize;
use spike_environment::{ApplicationView, Environment};
use tiny_http::{Header, Method, Request, Response};

use crate::Manager;
use crate::commands::ManagerCommand;
use crate::jobs::JobView;

/// An answer.
type HttpResponse = Response<Cursor<Vec<u8>>>;

/// The page's files: their paths, types and contents.
const FILES: [(&str, &str, &str); 3] = [
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("manager.css", "text/css; charset=utf-8", include_str!("page/manager.css")),
    ("manager.js", "text/javascript; charset=utf-8", include_str!("page/manager.js")),
];

/// Headers of all answers: nothing is kept, nothing comes from elsewhere, no other page shows this one, and its address, with
/// the secret, goes nowhere.
const HEADERS: [(&str, &str); 4] = [
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
];

/// More than any request has.
const MOST_BYTES: u64 = 1 << 20;

/// The contents of the page.
#[derive(Serialize)]
struct PageState {
    folder: String,
    applications: Vec<ApplicationView>,
    jobs: Vec<JobView>,
    /// Why the database cannot be read.
    problem: Option<String>,
}

impl Manager {
    /// Answers a request.
    pub(crate) fn answer(&self, request: &mut Request) -> HttpResponse {
        let Some(path) = self.access.path(request).map(str::to_string) else {
            return text(403, "Use the address that pathlength spike manager printed.");
        };
        let words: Vec<&str> = path.split('/').collect();
        match (request.method(), words.as_slice()) {
            (Method::Get, ["state"]) => json(&self.state()),
            (Method::Get, ["jobs", job]) => match job.parse().ok().and_then(|job| self.jobs.output(job)) {
                Some(output) => json(&output),
                None => text(404, "There is no such job."),
            },
            (Method::Post, ["jobs"]) => self.start(request),
            (Method::Post, ["jobs", job, "stop"]) => {
                job.parse().ok().into_iter().for_each(|job| self.jobs.stop(job));
                json(&())
            }
            (Method::Get, [name]) => match FILES.iter().find(|file| file.0 == *name) {
                Some(&(_, kind, contents)) => answer(200, kind, contents.as_bytes().into()),
                None => text(404, "There is no such page."),
            },
            _ => text(404, "There is no such page."),
        }
    }

    fn state(&self) -> PageState {
        let folder = self.launcher.folder();
        let views = Environment::open(folder).and_then(|mut environment| environment.views());
        let (applications, problem) = match views {
            Ok(applications) => (applications, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        PageState { folder: folder.display().to_string(), applications, jobs: self.jobs.views(), problem }
    }

    fn start(&self, request: &mut Request) -> HttpResponse {
        let mut body = Vec::new();
        if request.as_reader().take(MOST_BYTES).read_to_end(&mut body).is_err() {
            return text(400, "The request is incomplete.");
        }
        let started = serde_json::from_slice::<ManagerCommand>(&body)
            .map_err(|error| error.to_string())
            .and_then(|command| {
                let prepared = self.launcher.prepare(&command)?;
                self.jobs.start(prepared)
            });
        match started {
            Ok(job) => json(&job),
            Err(problem) => text(400, &problem),
        }
    }
}

fn json(value: &impl Serialize) -> HttpResponse {
    answer(200, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

fn text(status: u16, message: &str) -> HttpResponse {
    answer(status, "text/plain; charset=utf-8", message.as_bytes().into())
}

fn answer(status: u16, kind: &str, contents: Vec<u8>) -> HttpResponse {
    let answer = Response::from_data(contents).with_status_code(status);
    HEADERS.into_iter().chain([("Content-Type", kind)]).fold(answer, |answer, (name, value)| {
        match Header::from_bytes(name, value) {
            Ok(header) => answer.with_header(header),
            Err(()) => answer,
        }
    })
}
