# Lays out data in PostgreSQL's shared memory for cache lines, in the folder src of its sources. Each change must be found.
set -eu
cd "$1"
aligned='pg_attribute_aligned(PG_CACHE_LINE_SIZE)'

# A member of a structure begins a cache line: align FILE TYPE NAME
align() {
	sed -i "s/^\t\($2[[:space:]]*$3;\)/\t$aligned \1/" "$1"
	grep -q "$aligned $2[[:space:]]*$3;" "$1"
}

# Partner data. The lock of XLogCtl and the positions that it protects are at its end, in its middle and at its beginning: they
# come into one line, and what does not belong to them into others.
xlog=backend/access/transam/xlog.c
grep -q '^	slock_t		info_lck;' $xlog
grep -q '^	XLogwrtResult LogwrtResult;' $xlog
sed -i -e '/^\tslock_t\t\tinfo_lck;/d' -e '/^\tXLogwrtResult LogwrtResult;/d' $xlog
sed -i 's/^\tXLogwrtRqst LogwrtRqst;/\tslock_t info_lck;\n&\n\tXLogwrtResult LogwrtResult;/' $xlog
align $xlog slock_t info_lck

# False sharing. Processes store to their own entries of arrays, whose sizes are no multiples of a line.
align include/utils/backend_status.h int st_changecount
align include/storage/proc.h SHM_QUEUE links

# The same of two arrays of four bytes for each process: a line for each process, which has its entries of both.
multixact=backend/access/transam/multixact.c
sed -i -e 's/\(Oldest[A-Z][a-z]*MXactId\)\[\([^]][^]]*\)\]/\1[OwnLine(\2)]/' \
	-e 's/^#define MaxOldestSlot.*/&\n#define OwnLine(n)	((n) * (PG_CACHE_LINE_SIZE \/ sizeof(MultiXactId)))/' \
	-e 's/mul_size(sizeof(MultiXactId) \* 2, MaxOldestSlot)/mul_size(PG_CACHE_LINE_SIZE, MaxOldestSlot + 1)/' \
	-e 's/= OldestMemberMXactId + MaxOldestSlot;/= OldestMemberMXactId + 1;/' $multixact
test "$(grep -c -e 'MXactId\[OwnLine(MyBackendId)\]' -e '#define OwnLine' -e 'PG_CACHE_LINE_SIZE, MaxOldestSlot' \
	-e 'OldestMemberMXactId + 1;' $multixact)" -ge 10

# False sharing. Commits store beside what others only read, or store at other times.
align include/storage/proc.h pg_atomic_uint32 procArrayGroupFirst
align include/storage/proc.h Latch '\*walwriterLatch'
align include/access/transam.h FullTransactionId latestCompletedXid
