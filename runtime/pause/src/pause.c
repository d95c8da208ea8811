// pause holds the namespaces of a pod open and does nothing else.
//
// It is the first process of the pod's sandbox, and process 1 of every
// container of a pod that shares its PID namespace. From that follows all that
// it does: reap what is orphaned to it, end at once when it is told to, and
// sleep otherwise.
//
// There is no libc and no data segment. Signals are blocked and then waited
// for, instead of handled: so there is no handler to return from, nothing is
// lost between two waits, and process 1 (for which the kernel drops every
// signal that it neither handles nor blocks) gets SIGTERM like any other.
//
// build.sh is the only supported way to compile this file.

#define VERSION "1"

typedef long word;

enum {
	SIG_BLOCK = 0,
	SIGINT = 2,
	SIGTERM = 15,
	SIGCHLD = 17,
	EINTR = 4,
	WNOHANG = 1,
};

#if defined(__x86_64__)

enum { SYS_write = 1, SYS_rt_sigprocmask = 14, SYS_exit_group = 231, SYS_wait4 = 61, SYS_rt_sigtimedwait = 128 };

// The kernel enters with argc at the stack pointer and argv above it.
__asm__(
	".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call start\n");

static word syscall(word number, word a, word b, word c, word d)
{
	word result;
	register word r10 __asm__("r10") = d;
	__asm__ volatile("syscall"
		: "=a"(result)
		: "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
		: "rcx", "r11", "memory");
	return result;
}

#elif defined(__aarch64__)

enum { SYS_write = 64, SYS_rt_sigprocmask = 135, SYS_exit_group = 94, SYS_wait4 = 260, SYS_rt_sigtimedwait = 137 };

__asm__(
	".globl _start\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x0, sp\n"
	"	bl start\n");

static word syscall(word number, word a, word b, word c, word d)
{
	register word x8 __asm__("x8") = number;
	register word x0 __asm__("x0") = a;
	register word x1 __asm__("x1") = b;
	register word x2 __asm__("x2") = c;
	register word x3 __asm__("x3") = d;
	__asm__ volatile("svc #0"
		: "+r"(x0)
		: "r"(x8), "r"(x1), "r"(x2), "r"(x3)
		: "memory");
	return x0;
}

#else
#error "pause knows amd64 and arm64 only"
#endif

_Noreturn static void quit(word code)
{
	for (;;)
		syscall(SYS_exit_group, code, 0, 0, 0);
}

// The kernel's signal sets are 64 bits on both machines.
static unsigned long bit(int signal) { return 1UL << (signal - 1); }

_Noreturn __attribute__((used)) void start(word *stack)
{
	word argc = stack[0];
	const char *arg = argc > 1 ? (const char *)stack[2] : 0;
	if (arg && arg[0] == '-' && arg[1] == 'v' && !arg[2]) {
		static const char text[] = "podkeeper pause " VERSION "\n";
		syscall(SYS_write, 1, (word)text, sizeof text - 1, 0);
		quit(0);
	}

	unsigned long all = ~0UL;
	unsigned long wanted = bit(SIGINT) | bit(SIGTERM) | bit(SIGCHLD);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, (word)&all, 0, sizeof all);
	for (;;) {
		// Several deaths can stand behind one SIGCHLD, and some came before the
		// first wait: take all that there are.
		while (syscall(SYS_wait4, -1, 0, WNOHANG, 0) > 0)
			;
		word got = syscall(SYS_rt_sigtimedwait, (word)&wanted, 0, 0, sizeof wanted);
		if (got == SIGINT || got == SIGTERM)
			quit(0);
		// A stop and a continue interrupt the wait. Anything else means that the
		// wait does not work here, and must not become a busy loop.
		if (got < 0 && got != -EINTR)
			quit(1);
	}
}
