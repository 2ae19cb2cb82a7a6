//! Iterates over executed instructions in batches: a thread replays the trace while Python processes a batch.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use analysis::replay::{Executed, Replay, ReplayOrder, SelectedInstructions, Visitor};
use arrow_array::RecordBatch;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use events::record;
use pyo3::prelude::*;

use crate::errors::{PathlengthError, TraceError};
use crate::replays::{PySelection, warn};
use crate::rows::{RowBatches, schema};
use crate::traces::{PyExecution, PyMark, PyTrace};

/// The greatest number of batches that wait for Python.
const AHEAD: usize = 2;

/// The interval of checks for Ctrl-C while waiting for a batch.
const PAUSE: Duration = Duration::from_millis(50);

/// A message from the thread.
enum Sent<T> {
    /// The selection is valid: batches follow.
    Ready,
    Piece(T),
    /// Something could not be read.
    Problem(String),
    End,
    Failed(String),
}

/// Batches that a thread makes, a few ahead of the consumer. At the end the receiver is dropped.
struct Pieces<T>(Mutex<Option<Receiver<Sent<T>>>>);

/// Where the thread puts them.
struct Sink<T>(SyncSender<Sent<T>>);

impl<T> Sink<T> {
    /// An error if the consumer is gone.
    fn put(&self, piece: T) -> io::Result<()> {
        self.0.send(Sent::Piece(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl<T: Send + 'static> Pieces<T> {
    /// Starts the thread, which calls `make`.
    fn start(
        py: Python<'_>,
        trace: &PyTrace,
        selection: &PySelection,
        make: impl FnOnce(&Replay, &Sink<T>) -> io::Result<Vec<trace::Error>> + Send + 'static,
    ) -> PyResult<Pieces<T>> {
        let (trace, selection) = (Arc::clone(&trace.0), selection.0.clone());
        let (sender, receiver) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let sink = Sink(sender);
            let made = Replay::of_part(&trace, &selection, ReplayOrder::Time, |replay| {
                // If the consumer is gone, `make` gets the error.
                let _ = sink.0.send(Sent::Ready);
                make(replay, &sink)
            });
            let last = match made {
                Ok(Ok(problems)) => {
                    for problem in problems {
                        let _ = sink.0.send(Sent::Problem(problem.to_string()));
                    }
                    Sent::End
                }
                Ok(Err(error)) => Sent::Failed(error.to_string()),
                Err(absent) => Sent::Failed(absent.to_string()),
            };
            let _ = sink.0.send(last);
        });
        let pieces = Pieces(Mutex::new(Some(receiver)));
        pieces.receive(py)?;
        Ok(pieces)
    }

    /// The next batch; None at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        loop {
            match self.receive(py)? {
                Some(Sent::Piece(piece)) => return Ok(Some(piece)),
                Some(Sent::Problem(problem)) => warn(py, &problem)?,
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next message; None after the end.
    fn receive(&self, py: Python<'_>) -> PyResult<Option<Sent<T>>> {
        loop {
            let received = py.detach(|| {
                let mut receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let received = receiver.as_ref()?.recv_timeout(PAUSE);
                if matches!(received, Ok(Sent::End | Sent::Failed(_))) {
                    *receiver = None;
                }
                Some(received)
            });
            match received {
                None | Some(Ok(Sent::End)) => return Ok(None),
                Some(Ok(Sent::Failed(reason))) => return Err(TraceError::new_err(reason)),
                Some(Ok(sent)) => return Ok(Some(sent)),
                Some(Err(RecvTimeoutError::Timeout)) => py.check_signals()?,
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    return Err(PathlengthError::new_err("the thread that reads the trace has stopped"));
                }
            }
        }
    }
}

/// Record batches with a row an instruction.
#[pyclass(frozen)]
pub struct Batches {
    pieces: Pieces<RecordBatch>,
    has_values: bool,
}

impl Batches {
    /// For a selection.
    pub fn new(py: Python<'_>, trace: &PyTrace, selection: &PySelection) -> PyResult<Batches> {
        let has_values = trace.0.header().has_values;
        let pieces = Pieces::start(py, trace, selection, |replay, sink| {
            let mut rows = RowBatches::new(replay, |batch| sink.put(batch));
            let problems = replay.run(&mut rows, &mut |_| ())?;
            rows.finish()?;
            Ok(problems)
        })?;
        Ok(Batches { pieces, has_values })
    }
}

#[pymethods]
impl Batches {
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema(self.has_values).to_pyarrow(py)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        py.check_signals()?;
        Ok(self.pieces.next(py)?.map(PyArrowType))
    }
}

/// Blocks that were executed, and marks.
#[pyclass(frozen)]
pub struct Executions {
    pieces: Pieces<Vec<Item>>,
    /// The rest of the current batch.
    items: Mutex<std::vec::IntoIter<Item>>,
}

enum Item {
    Execution(PyExecution),
    Mark(PyMark),
}

impl Executions {
    /// For a selection, with or without marks.
    pub fn new(
        py: Python<'_>,
        trace: &PyTrace,
        selection: &PySelection,
        marks: bool,
    ) -> PyResult<Executions> {
        let pieces = Pieces::start(py, trace, selection, move |replay, sink| {
            let functions = replay.dictionary.regions.iter().map(name).collect();
            let mut items = Items { replay, sink, marks, functions, items: Vec::new() };
            let problems = replay.run(&mut items, &mut |_| ())?;
            items.flush()?;
            Ok(problems)
        })?;
        Ok(Executions { pieces, items: Mutex::default() })
    }
}

#[pymethods]
impl Executions {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            let item = self.items.lock().unwrap_or_else(PoisonError::into_inner).next();
            match item {
                Some(Item::Execution(execution)) => return Ok(Some(Py::new(py, execution)?.into_any())),
                Some(Item::Mark(mark)) => return Ok(Some(Py::new(py, mark)?.into_any())),
                None => match self.pieces.next(py)? {
                    Some(piece) => {
                        *self.items.lock().unwrap_or_else(PoisonError::into_inner) = piece.into_iter();
                    }
                    None => return Ok(None),
                },
            }
        }
    }
}

/// Collects executions and marks.
struct Items<'a> {
    replay: &'a Replay<'a>,
    sink: &'a Sink<Vec<Item>>,
    marks: bool,
    /// The names of [`analysis::replay::Dictionary::regions`].
    functions: Vec<Arc<str>>,
    items: Vec<Item>,
}

/// Items in a batch.
const ITEMS: usize = 1 << 13;

fn name(place: &analysis::replay::ProgramRegion) -> Arc<str> {
    match &place.name {
        Some(name) => format!("{}!{}", name.image, name.function).into(),
        None => place.image.as_str().into(),
    }
}

impl Items<'_> {
    fn push(&mut self, item: Item) -> io::Result<()> {
        self.items.push(item);
        if self.items.len() < ITEMS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.put(std::mem::take(&mut self.items))
    }
}

/// The kind of an exception's mark.
fn exception_name(exception: record::ExceptionKind) -> &'static str {
    use record::ExceptionKind::*;
    match exception {
        MachineCheck => "exception_machine_check",
        ProcessorInterrupt => "exception_processor_interrupt",
        ClockInterrupt => "exception_clock_interrupt",
        DeviceInterrupt => "exception_device_interrupt",
        PageFault => "exception_page_fault",
        UnalignedAccess => "exception_unaligned_access",
        IllegalInstruction => "exception_illegal_instruction",
        Arithmetic => "exception_arithmetic",
        FloatDisabled => "exception_float_disabled",
        Other => "exception_other",
    }
}

impl Visitor for Items<'_> {
    fn mark(&mut self, stream: u32, before: u64, mark: record::Mark, is_selected: bool) -> io::Result<()> {
        if !(self.marks && is_selected) {
            return Ok(());
        }
        let (kind, number) = match mark {
            record::Mark::Order(number) => ("order", Some(number)),
            record::Mark::Gap => ("gap", None),
            record::Mark::Discontinuity => ("diverted", None),
            record::Mark::SystemCall(number) => ("system_call", Some(number.into())),
            record::Mark::UnitBegins(number) => ("unit_begins", Some(number)),
            record::Mark::UnitEnds(number) => ("unit_ends", Some(number)),
            record::Mark::UnitLeft(number) => ("unit_left", Some(number)),
            record::Mark::UnitCut(number) => ("unit_cut", Some(number)),
            record::Mark::Heap(record::Heap::Caller(address)) => ("heap_caller", Some(address)),
            record::Mark::Heap(record::Heap::Name(bytes)) => ("heap_name", Some(bytes)),
            record::Mark::Heap(record::Heap::Size(bytes)) => ("heap_size", Some(bytes)),
            record::Mark::Heap(record::Heap::Block(address)) => ("heap_block", Some(address)),
            record::Mark::Heap(record::Heap::Freed(address)) => ("heap_freed", Some(address)),
            record::Mark::Heap(record::Heap::Copied(process)) => ("heap_copied", Some(process.into())),
            record::Mark::Heap(record::Heap::Gone) => ("heap_gone", None),
            record::Mark::Mapping(record::MappingEvent::Start(address)) => ("mapping_start", Some(address)),
            record::Mark::Mapping(record::MappingEvent::Size(bytes)) => ("mapping_size", Some(bytes)),
            record::Mark::Mapping(record::MappingEvent::Shared(object)) => {
                ("mapping_shared", Some(object.into()))
            }
            record::Mark::Mapping(record::MappingEvent::Private(object)) => {
                ("mapping_private", Some(object.into()))
            }
            record::Mark::Mapping(record::MappingEvent::Offset(bytes)) => ("mapping_offset", Some(bytes)),
            record::Mark::Mapping(record::MappingEvent::Copied(process)) => {
                ("mapping_copied", Some(process.into()))
            }
            record::Mark::Mapping(record::MappingEvent::Gone) => ("mapping_gone", None),
            record::Mark::Exception(exception) => (exception_name(exception), None),
            record::Mark::PalCall(function) => ("pal_call", Some(function.into())),
            record::Mark::PalReturn => ("pal_return", None),
            record::Mark::ObjectEntered(object) => ("object_entered", Some(object.into())),
            record::Mark::ObjectLeft(object) => ("object_left", Some(object.into())),
            record::Mark::LockAcquired(lock) => ("lock_acquired", Some(lock.into())),
            record::Mark::LockReleased(lock) => ("lock_released", Some(lock.into())),
            record::Mark::LockAwaited(lock) => ("lock_awaited", Some(lock.into())),
        };
        self.push(Item::Mark(PyMark { stream, instruction: before + 1, kind, number }))
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        if executed.selected == SelectedInstructions::None {
            return Ok(());
        }
        let facts = self.replay.dictionary.facts(executed.execution.block);
        self.push(Item::Execution(PyExecution {
            stream: executed.stream,
            instruction: executed.before + 1,
            block: executed.execution.block,
            address: facts.address,
            length: facts.length() as u32,
            function: Arc::clone(&self.functions[facts.region as usize]),
            addresses: executed
                .execution
                .addresses
                .iter()
                .map(|&word| record::address_of_word(word))
                .collect(),
            values: executed.execution.values.to_vec(),
        }))
    }
}
