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

# Load-locked reads a line that store-conditional then asks for again: two operations for each lock that another node had. A store to
# the same line in front of them asks for it once. (Instructions that lock, as x86's, do that by themselves.)
claim='*(volatile uint16 *) \&'
sed -i 's/^\tuint16\t\ttranche;.*/&\n\tuint16\t\tclaim;\t\t\t\/* stored to before the lock is taken *\//' include/storage/lwlock.h
sed -i '/^LWLockAttemptLock(/,/^}/s/^\told_state = pg_atomic_read_u32(&lock->state);/\t'"$claim"'lock->claim = 1;\n&/' $lwlock
grep -q 'lock->claim = 1' $lwlock
buffers=backend/storage/buffer/bufmgr.c
sed -i 's/^\tint\t\t\tfreeNext;.*/&\n\tuint16\t\tclaim;\t\t\t\/* stored to before a pin *\//' include/storage/buf_internals.h
sed -i '/^PinBuffer(/,/^}/s/^\t\told_buf_state = pg_atomic_read_u32(&buf->state);/\t\t'"$claim"'buf->claim = 1;\n&/' $buffers
grep -q 'buf->claim = 1' $buffers
sed -i -e 's/^\tuint64\t\tPrevBytePos;/&\n\tuint16\t\tclaim;\t\t\t\/* stored to before the lock is taken *\//' \
	-e 's/^\tSpinLockAcquire(&Insert->insertpos_lck);/\t'"$claim"'Insert->claim = 1;\n&/' $xlog
grep -q 'Insert->claim = 1' $xlog

# A process remembers the buffers in which it found pages, and looks whether they are still there after a pin, as a pinned buffer keeps
# its page. So pages that it accesses again need neither the lock nor the buckets of the hash table of all processes.
sed -i '/^BufferAlloc(/,/^}/{
s/^\tuint32\t\tbuf_state;/&\
	static struct\
	{\
		BufferTag	tag;\
		int			buf_id;\
	}			recent[4096], *known;\
/
s/^\tnewPartitionLock = BufMappingPartitionLock(newHash);/&\
\
	known = \&recent[newHash % lengthof(recent)];\
	if (BUFFERTAGS_EQUAL(known->tag, newTag))\
	{\
		buf = GetBufferDescriptor(known->buf_id);\
		if (PinBuffer(buf, strategy) \&\& BUFFERTAGS_EQUAL(buf->tag, newTag))\
		{\
			*foundPtr = true;\
			return buf;\
		}\
		UnpinBuffer(buf, true);\
	}\
/
s/^\t\tvalid = PinBuffer(buf, strategy);/&\
		known->tag = newTag;\
		known->buf_id = buf_id;/
}' $buffers
grep -q 'PinBuffer(buf, strategy) && BUFFERTAGS_EQUAL(buf->tag, newTag)' $buffers
test "$(grep -c 'known->buf_id = buf_id;' $buffers)" -ge 1

# Processes that began one after another, which are on one node as long as they keep their processors, have one lock for insertions into
# the log.
sed -i 's/lockToTry = MyProc->pgprocno % NUM_XLOGINSERT_LOCKS;/lockToTry = MyProc->pgprocno \/ 4 % NUM_XLOGINSERT_LOCKS;/' $xlog
grep -q 'pgprocno / 4 %' $xlog

# A transaction that uses more than 16 tables and indexes, as New-Order of TPC-C does, takes the locks of the others in the table of all
# processes. 64 bits have room for 21.
sed -i 's/^\(#define[[:space:]]*FP_LOCK_SLOTS_PER_BACKEND\) 16/\1 21/' include/storage/proc.h
grep -q 'FP_LOCK_SLOTS_PER_BACKEND 21' include/storage/proc.h
