package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rota/internal/api"
	"rota/internal/counters"
	"rota/internal/daemon"
	"rota/internal/sched"
	"rota/internal/where"
)

// defaultConfig is read when it is there and no other file is named.
const defaultConfig = "/etc/rota/rota.yaml"

// passwdFile has the names of users; those of a directory service are not in it.
const passwdFile = "/etc/passwd"

func runCommand() *cobra.Command {
	var config, fault string
	var record recorder
	c := &cobra.Command{
		Use:   "run",
		Short: "Schedule this machine until asked to stop",
		Long: `run attaches the scheduler, gives every task its class and stays in the
foreground. SIGHUP and a changed file reload the configuration; SIGTERM and
SIGINT detach, after which the kernel's own scheduler has every task.

Without --config it reads ` + defaultConfig + ` if that is there, and otherwise runs
with built-in defaults. --json writes the log as JSON.

Exit code: 0 asked to stop; 78 this kernel can't run rota; 1 anything else.`,
		Example: `  sudo rota run
  sudo rota run --config rota.yaml --socket /run/rota/test.sock`,
		Args: atMost(0),
	}
	c.Flags().StringVarP(&config, "config", "c", "", "configuration file (default "+defaultConfig+")")
	socket := addSocket(c)
	c.Flags().StringVar(&record.path, "record", "", "write what the fair tier decides to this file, for rota-lab oracle")
	c.Flags().IntVar(&record.events, "record-events", 200000, "room of the record: events for each CPU, of 64 bytes")
	c.Flags().StringVar(&fault, "debug-fault", "", `provoke a fault a second after the start: "error"`)
	_ = c.Flags().MarkHidden("debug-fault")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if fault != "" && fault != "error" {
			return fmt.Errorf(`rota run: --debug-fault %q: unknown: write "error"`, fault)
		}
		if err := record.check(); err != nil {
			return err
		}
		source := daemon.Source{Path: defaultConfig, Optional: true}
		if config != "" {
			// Others are told of it who are in another folder.
			path, err := filepath.Abs(config)
			if err != nil {
				return fmt.Errorf("rota run: --config %s: %w", config, err)
			}
			source = daemon.Source{Path: path}
		}
		options := runOptions(source, logger(wantJSON(c)))
		options.Load = record.load
		options.ProvokeError = fault == "error"
		return explain(run(c.Context(), options, *socket))
	}
	return c
}

// explain puts an unfit kernel before every other reason not to start: the
// others can be mended in vain. When all went well nobody waits for the look.
func explain(err error) error {
	if err == nil {
		return nil
	}
	refused := refusal(sched.Check())
	var unfit *sched.UnfitError
	var exit *exitError
	if errors.As(err, &unfit) || errors.As(refused, &exit) && exit.code == exitUnfit {
		return cmp.Or(refused, err)
	}
	return err
}

func runOptions(source daemon.Source, log *slog.Logger) daemon.Options {
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd: watchdog", "error", err)
	}
	return daemon.Options{
		Source:       source,
		Proc:         "/proc",
		Root:         os.DirFS("/"),
		Passwd:       passwdFile,
		OpenFunction: openFunction,
		OpenCounters: func(event string, latency time.Duration, cpus []int) (*counters.Set, error) {
			return counters.Open(os.DirFS("/"), event, latency, cpus)
		},
		Notify:   func(state string) { _, _ = systemd.SdNotify(false, state) },
		Log:      log,
		Version:  version,
		Kernel:   release(),
		Watchdog: watchdog,
	}
}

// openFunction watches a function that is named as in a rule.
func openFunction(name string) (daemon.FunctionWatch, error) {
	module, function, found := strings.Cut(name, ":")
	if !found {
		module, function = "", name
	}
	f, err := where.Find(os.DirFS("/"), function, module)
	if err != nil {
		return nil, err
	}
	watch, err := where.OpenTasks(f)
	if err != nil {
		return nil, err
	}
	if watch.Blind {
		watch.Close()
		return nil, fmt.Errorf("%s: this kernel hides whether a task or an interrupt executes it (CONFIG_KALLSYMS_ALL): write the rule by cgroup", f)
	}
	return watch, nil
}

// run is the life of the daemon: the door first, since it also keeps a second
// daemon away, then the scheduler.
func run(ctx context.Context, o daemon.Options, socket string) error {
	d, err := daemon.New(o)
	if err != nil {
		return err
	}
	door, err := api.Listen(socket)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() {
		if err := api.Serve(serving, door, d, o.Log); err != nil {
			o.Log.Error("socket: closed", "error", err)
		}
	})
	all.Go(func() { d.Watch(serving) })
	all.Go(func() { reloadOnHangup(serving, d) })
	err = d.Run(ctx)
	stop()
	all.Wait()
	return err
}

// reloadOnHangup reloads on SIGHUP. A refusal is in the log.
func reloadOnHangup(ctx context.Context, d *daemon.Daemon) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			_, _ = d.Reload(ctx)
		}
	}
}

// logger writes to standard error; the journal has the time already.
func logger(asJSON bool) *slog.Logger {
	options := &slog.HandlerOptions{}
	if os.Getenv("JOURNAL_STREAM") != "" {
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
	}
	if asJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// release is the kernel's.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
