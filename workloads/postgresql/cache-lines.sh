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
# False sharing. What follows is only read, but for the member before it.
align $xlog char '\*pages'

# Partner data. XidGenLock guards the next transaction's number, and ProcArrayLock the last one's that has ended. Each lock has a
# slot of 128 bytes of its own: the data come into the slots, behind the locks, so that those who take a lock have them, too.
transam=include/access/transam.h
grep -q '^	FullTransactionId latestCompletedXid;' $transam
sed -i 's/^\tFullTransactionId latestCompletedXid;/\tchar\t\tslot[80];\t\/* the rest of a slot, and the next lock *\/\n&/' $transam
lwlock=backend/storage/lmgr/lwlock.c
sed -i -e 's/^#include "miscadmin.h"/#include "access\/transam.h"\n&/' \
	-e 's/^\t\tMainLWLockArray = (LWLockPadded \*) ptr;/&\n\t\tStaticAssertStmt(offsetof(VariableCacheData, latestCompletedXid) == LWLOCK_PADDED_SIZE, "slots");\n\t\tShmemVariableCache = (VariableCache) ((char *) XidGenLock + sizeof(LWLock));/' $lwlock
grep -q 'ShmemVariableCache = (VariableCache)' $lwlock

# False sharing. Processes store to their own entries of arrays, whose sizes are no multiples of a line.
align include/utils/backend_status.h int st_changecount

# The same of two arrays of four bytes for each process: a line for each process, which has its entries of both.
multixact=backend/access/transam/multixact.c
sed -i -e 's/\(Oldest[A-Z][a-z]*MXactId\)\[\([^]][^]]*\)\]/\1[OwnLine(\2)]/' \
	-e 's/^#define MaxOldestSlot.*/&\n#define OwnLine(n)	((n) * (PG_CACHE_LINE_SIZE \/ sizeof(MultiXactId)))/' \
	-e 's/mul_size(sizeof(MultiXactId) \* 2, MaxOldestSlot)/mul_size(PG_CACHE_LINE_SIZE, MaxOldestSlot + 1)/' \
	-e 's/= OldestMemberMXactId + MaxOldestSlot;/= OldestMemberMXactId + 1;/' $multixact
test "$(grep -c -e 'MXactId\[OwnLine(MyBackendId)\]' -e '#define OwnLine' -e 'PG_CACHE_LINE_SIZE, MaxOldestSlot' \
	-e 'OldestMemberMXactId + 1;' $multixact)" -ge 10
