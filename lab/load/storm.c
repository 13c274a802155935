// SPDX-License-Identifier: Apache-2.0
/*
 * storm fork|exec WIDTH BOARD SLOT - a storm of short processes.
 *
 * WIDTH children are kept alive; each spins for about 200000 instructions and
 * ends ("fork"), or executes this program again before it does so ("exec").
 * The slot counts the children that have ended. Runs until it is killed.
 */
#include "board.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

static void start_child(const char *self, int exec)
{
	pid_t pid = fork();

	if (pid < 0) {
		usleep(1000); /* out of processes for now: the storm has its limit */
		return;
	}
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (exec) {
		execl(self, self, "child", (char *)NULL);
		_exit(127);
	}
	churn(1540);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct slot *slot;
	long width, alive = 0;
	int exec;

	if (argc == 2 && !strcmp(argv[1], "child")) {
		churn(1540);
		return 0;
	}
	if (argc != 5) {
		fprintf(stderr, "usage: storm fork|exec WIDTH BOARD SLOT\n");
		return 2;
	}
	exec = !strcmp(argv[1], "exec");
	width = number(argv[2], 1, 1000);
	slot = board_open(argv[3]) + number(argv[4], 0, BOARD_SLOTS - 1);
	for (;;) {
		int status;

		for (; alive < width; alive++)
			start_child("/proc/self/exe", exec);
		if (wait(&status) > 0) {
			slot->loops++;
			if (!WIFEXITED(status) || WEXITSTATUS(status))
				slot->errors++;
		}
		alive--;
	}
}
