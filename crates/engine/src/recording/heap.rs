//! Tracks the calls of allocation functions, whichever image they are in.

use std::collections::BTreeMap;

use events::LoadedImage;
use events::record::{self, Heap, Mark};
use isa::{TransferKind, TransferTarget};

use crate::platform::Platform;
use crate::program_location::entries;
use guest::DecodedBlock;
use guest_memory::Memory;

/// An allocation function. Arguments are numbered from 0.
#[derive(Debug)]
struct AllocationFunction {
    name: &'static str,
    /// The argument with the block that it frees or reallocates.
    frees: Option<usize>,
    /// The arguments whose product is the size of the allocated block; none if it only frees.
    size: &'static [usize],
    /// The argument with the address to which it stores the block's address, unless it returns that.
    stores: Option<usize>,
}

const fn allocates(name: &'static str, size: &'static [usize]) -> AllocationFunction {
    AllocationFunction { name, frees: None, size, stores: None }
}

/// The functions of the C library, C++'s operators new, which call those, and servers' own.
const FUNCTIONS: [AllocationFunction; 19] = [
    allocates("malloc", &[0]),
    allocates("calloc", &[0, 1]),
    AllocationFunction { frees: Some(0), ..allocates("realloc", &[1]) },
    AllocationFunction { frees: Some(0), ..allocates("reallocarray", &[1, 2]) },
    AllocationFunction { frees: Some(0), ..allocates("free", &[]) },
    allocates("aligned_alloc", &[1]),
    allocates("memalign", &[1]),
    AllocationFunction { stores: Some(0), ..allocates("posix_memalign", &[2]) },
    allocates("valloc", &[0]),
    allocates("pvalloc", &[0]),
    allocates("_Znwm", &[0]),
    allocates("_Znam", &[0]),
    allocates("_ZnwmSt11align_val_t", &[0]),
    allocates("_ZnamSt11align_val_t", &[0]),
    allocates("_ZnwmRKSt9nothrow_t", &[0]),
    allocates("_ZnamRKSt9nothrow_t", &[0]),
    // PostgreSQL's shared memory: its structures are named by the functions that allocate them.
    allocates("ShmemInitStruct", &[1]),
    allocates("ShmemAlloc", &[0]),
    allocates("ShmemAllocNoError", &[0]),
];

/// An instruction of an allocation function that must be observed.
#[derive(Clone, Copy, Debug)]
enum AllocatorSite {
    /// Its entry.
    Entry(&'static AllocationFunction),
    /// Its return, or the return of a function that it tail-calls.
    Return,
}

/// The calls of allocation functions in one thread. A nested call belongs to the outer one.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocations {
    sites: BTreeMap<u64, AllocatorSite>,
    open_call: Option<OpenAllocation>,
    /// Marks that have not been recorded.
    pub(super) marks: Vec<Mark>,
}

/// A call that has not returned.
#[derive(Clone, Debug)]
struct OpenAllocation {
    function: &'static AllocationFunction,
    return_address: u64,
    stack_pointer: u64,
    size: u64,
    /// The address to which the block's address will be stored, or 0.
    result_address: u64,
    /// The block that was passed to it.
    old_block: u64,
}

impl Allocations {
    /// The tracker of another thread.
    pub(super) fn thread(&self) -> Allocations {
        Allocations { sites: self.sites.clone(), ..Allocations::default() }
    }

    /// An image was mapped. Returns the addresses at which blocks must begin.
    pub(super) fn mapped(&mut self, image: &LoadedImage, file: &image::Image) -> Vec<u64> {
        let mut sites = Vec::new();
        for function in &FUNCTIONS {
            for symbol in file.symbols(function.name).iter().filter(|symbol| symbol.function) {
                // Callers of the first entry pass the second one, too.
                let entry = entries(file, symbol.address).last().unwrap_or(symbol.address);
                sites.extend(returns(file, symbol.address).into_iter().map(|at| (at, AllocatorSite::Return)));
                sites.push((entry, AllocatorSite::Entry(function)));
            }
        }
        let sites = sites.into_iter().map(|(at, site)| (at.wrapping_add(image.bias), site));
        let addresses = sites.clone().map(|(at, _)| at).collect();
        self.sites.extend(sites);
        addresses
    }

    /// Another program takes the place of this one.
    pub(super) fn replaced(&mut self) {
        *self = Allocations { marks: vec![Mark::Heap(Heap::Gone)], ..Allocations::default() };
    }

    /// Control is at the first instruction of a block.
    pub(super) fn enter<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G, memory: &Memory) {
        match self.sites.get(&block.address) {
            Some(AllocatorSite::Entry(function)) => self.called(function, cpu),
            Some(AllocatorSite::Return) => self.returned(block, cpu, memory),
            None => {}
        }
    }

    fn called<G: Platform>(&mut self, function: &'static AllocationFunction, cpu: &G) {
        let (return_address, stack_pointer) = (cpu.return_address(), cpu.stack_pointer());
        let argument = |number: usize| cpu.argument(number);
        let is_within = self.open_call.as_ref().is_some_and(|open_call| {
            let is_same =
                stack_pointer == open_call.stack_pointer && return_address == open_call.return_address;
            stack_pointer < open_call.stack_pointer || is_same
        });
        let old_block = function.frees.map_or(0, argument);
        if old_block != 0 && (function.size.is_empty() || !is_within) {
            self.marks.push(Mark::Heap(Heap::Freed(old_block)));
        }
        if !function.size.is_empty() && !is_within {
            let size = function.size.iter().map(|&number| argument(number)).fold(1, u64::saturating_mul);
            let size = size.min(record::LARGEST);
            let result_address = function.stores.map_or(0, argument);
            self.open_call = Some(OpenAllocation {
                function,
                return_address,
                stack_pointer,
                size,
                result_address,
                old_block,
            });
        }
    }

    /// Handles a return, which may end the open call.
    fn returned<G: Platform>(&mut self, block: &DecodedBlock<G>, cpu: &G, memory: &Memory) {
        let to = block.words.first().and_then(|&word| cpu.jump_target(word));
        let is_its = |open_call: &mut OpenAllocation| {
            to == Some(open_call.return_address) && cpu.stack_pointer() == open_call.stack_pointer
        };
        let Some(open_call) = self.open_call.take_if(is_its) else { return };
        let result = cpu.result();
        let block = match open_call.function.stores {
            None => result,
            Some(_) if result == 0 => memory.load::<8>(open_call.result_address).unwrap_or(0),
            Some(_) => 0,
        };
        // A failed reallocation leaves the block as it was.
        if block != 0 || open_call.old_block != 0 && open_call.size != 0 {
            let heap =
                [Heap::Caller(open_call.return_address), Heap::Size(open_call.size), Heap::Block(block)];
            self.marks.extend(heap.map(Mark::Heap));
        }
    }
}

/// The addresses of a function's returns, and of those of the functions that it tail-calls.
fn returns(file: &image::Image, address: u64) -> Vec<u64> {
    let mut functions: Vec<&image::FunctionSymbol> = file.function_at(address).into_iter().collect();
    let mut returns = Vec::new();
    let mut next = 0;
    while let Some(&function) = functions.get(next) {
        next += 1;
        let range = function.address..function.address + function.size;
        let Some(code) = file.code().iter().find(|code| (code.address..code.end()).contains(&range.start))
        else {
            continue;
        };
        let words = file.instructions_from(code, range.start).take_while(|(at, _)| range.contains(at));
        let transfer = |word| file.instruction_set().summary(word)?.transfer;
        for (at, transfer) in words.filter_map(|(at, word)| Some((at, transfer(word)?))) {
            let target = match (transfer.kind, transfer.target) {
                (TransferKind::Return, _) => {
                    returns.push(at);
                    None
                }
                (TransferKind::Jump, TransferTarget::Relative(distance)) => {
                    Some(at.wrapping_add_signed(distance))
                }
                _ => None,
            };
            let target = target.filter(|target| !range.contains(target));
            let other = target.and_then(|target| file.function_at(target));
            functions.extend(other.filter(|other| !functions.contains(other)));
        }
    }
    returns
}
