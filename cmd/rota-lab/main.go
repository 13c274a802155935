// Command rota-lab boots Debian kernels in QEMU with instruction-counted time,
// runs scenarios under several schedulers and compares them.
//
// The same binary is the guest: as PID 1 of a booted machine, and as what PID 1
// starts, it hands over to lab/guest before anything else happens.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"rota/lab/guest"
)

// version is set by the build.
var version = "dev"

func main() {
	switch {
	case guest.IsStage(os.Args):
		guest.RunStage(os.Args)
	case os.Getpid() == 1, guest.IsWorker(os.Args):
		guest.Main(guestFunction)
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rota-lab:", err)
		var code commandExit
		if errors.As(err, &code) {
			os.Exit(int(code))
		}
		os.Exit(1)
	}
}

// untilSignal ends with the signals that would end this program at once, and leave what it has in
// /tmp: also that of a terminal that is closed, unless we were started to outlive it (nohup).
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signal.NotifyContext(parent, signals...)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "rota-lab",
		Short:         "Compare CPU schedulers on real kernels in virtual time",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), listCommand(), compareCommand(), oracleCommand(), execCommand(), shellCommand(), kernelsCommand(), peersCommand())
	return root
}
