package main

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rota/bench/binder/latency"
	"rota/bench/binder/throughput"
	"rota/bench/peer"
	"rota/bench/pipe"
)

func benchCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "bench",
		Short: "Measure: waits for a CPU, the cost of a switch, what a low frequency takes, binder calls",
		Long: `bench holds measuring tools. They need no daemon, unless asked for one of its
classes, and measure whatever scheduler the kernel has.`,
		Example: `  sudo rota bench binder-latency -i 5000 -pair 3
  sudo rota bench hwbinder-throughput
  sudo rota bench runnable --pid 4321
  rota bench switch
  sudo rota bench frequency "gzip -c /tmp/big" "sort /tmp/big"`,
	}, runnableCommand(), switchCommand(), frequencyCommand(), latencyCommand(latency.Binder), latencyCommand(latency.HwBinder),
		throughputCommand("binder"), throughputCommand("hwbinder"))
}

// benchRoles are the processes that the benches start; see package peer.
func benchRoles() map[string]peer.Role {
	roles := latency.Roles()
	maps.Copy(roles, throughput.Roles())
	maps.Copy(roles, pipe.Roles())
	return roles
}

// ownWords are the original's options that our command line would read as
// several one-letter options.
var ownWords = map[string]string{"-pair": "--pairs", "-trace": "--trace", "-deadline_us": "--deadline_us"}

// benchArgs reads the command line of a bench as the original does.
func benchArgs(args []string) []string {
	command := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if command < 0 || args[command] != "bench" {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		word, value, given := strings.Cut(arg, "=")
		if ours, known := ownWords[word]; known {
			args[i] = ours
			if given {
				args[i] += "=" + value
			}
		}
	}
	return args
}

// measuring makes this process fit for a bench: what main sets is for the daemon.
func measuring() {
	debug.SetMemoryLimit(math.MaxInt64)
	debug.SetGCPercent(100)
}

// surroundings says where a measurement was made.
func surroundings(cpus int) latency.Context {
	var name unix.Utsname
	unix.Uname(&name)
	c := latency.Context{
		Kernel: unix.ByteSliceToString(name.Release[:]), Machine: unix.ByteSliceToString(name.Machine[:]),
		Clocksource: firstLine("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Scheduler:   "kernel", CPUs: cpus,
	}
	if state := firstLine("/sys/kernel/sched_ext/state"); state == "enabled" || state == "enabling" {
		c.Scheduler = firstLine("/sys/kernel/sched_ext/root/ops")
	}
	return c
}

// firstLine is the first line of a file of the kernel, "" when it is not there.
func firstLine(path string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return safe(line)
}
