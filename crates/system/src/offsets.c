/* Compiled with the kernel: where the recorder finds the thread that runs, in the manner of the kernel's asm-offsets.c. */
#include <linux/kbuild.h>
#include <linux/sched.h>

void offsets(void)
{
	DEFINE(stack, THREAD_SIZE);
	OFFSET(task, thread_info, task);
	OFFSET(task_stack, task_struct, stack);
	OFFSET(pid, task_struct, pid);
	OFFSET(tgid, task_struct, tgid);
	OFFSET(comm, task_struct, comm);
	OFFSET(mm, task_struct, mm);
}
