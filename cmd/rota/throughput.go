package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rota/bench/binder/throughput"
)

// throughputFlags are google-benchmark's.
type throughputFlags struct {
	filter, format, minTime string
}

func throughputCommand(kind string) *cobra.Command {
	o := throughput.Options{Gather: kind == "hwbinder"}
	var flags throughputFlags
	c := &cobra.Command{
		Use:   kind + "-throughput",
		Short: fmt.Sprintf("Measure how much goes through %s, as AOSP's test does", kind),
		Long: fmt.Sprintf(`%s-throughput measures calls that send a vector of bytes to another process and
get it back, from 4 bytes to 64 KiB. Names, options and output are those of AOSP's
test, which is written with google-benchmark. Bytes per second are those of one
direction; as many come back.

It needs a binder device and root, and nothing of Android.`, kind),
		Example: fmt.Sprintf(`  sudo rota bench %[1]s-throughput
  sudo rota bench %[1]s-throughput --benchmark_filter '/(4|65536)$' --benchmark_format=json`, kind),
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error { return runThroughput(c, o, flags) },
	}
	f := c.Flags()
	f.StringVar(&flags.filter, "benchmark_filter", "", "measure only the names that this regular expression matches")
	f.StringVar(&flags.format, "benchmark_format", "console", "console or json; --json is short for the latter")
	f.StringVar(&flags.minTime, "benchmark_min_time", throughput.DefaultMinTime.String(), "how long each row takes at least, or its iterations, as 1000x")
	f.StringVar(&o.Device, "device", "/dev/"+kind, "the binder device")
	return c
}

// apply puts the flags into the options.
func (f throughputFlags) apply(o *throughput.Options) (err error) {
	if f.format != "console" && f.format != "json" {
		return fmt.Errorf("--benchmark_format %q: must be console or json", f.format)
	}
	if f.minTime == throughput.DefaultMinTime.String() {
		o.MinTime = throughput.DefaultMinTime
	} else if o.MinTime, o.Iterations, err = throughput.ParseMinTime(f.minTime); err != nil {
		return err
	}
	if f.filter != "" {
		if o.Filter, err = regexp.Compile(f.filter); err != nil {
			return fmt.Errorf("--benchmark_filter: %w", err)
		}
	}
	return nil
}

func runThroughput(c *cobra.Command, o throughput.Options, flags throughputFlags) error {
	measuring()
	name, out := c.CommandPath(), c.OutOrStdout()
	if err := flags.apply(&o); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	asJSON := flags.format == "json" || wantJSON(c)
	about := benchmarkContext()
	fmt.Fprintf(os.Stderr, "%s\nRunning %s\nRun on (%d X %d MHz CPU s)\n", about.Date, about.Executable, about.CPUs, about.MHz)
	begun := false
	r, err := throughput.Run(c.Context(), o, func(m throughput.Measured) {
		if !asJSON && !begun {
			o.Header(out)
		}
		begun = true
		if !asJSON {
			o.Row(out, m)
		}
	})
	switch {
	case c.Context().Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("%s: interrupted; nothing is left behind", name)}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case asJSON:
		return r.JSON(out, about)
	}
	return nil
}

// benchmarkContext is what google-benchmark says first.
func benchmarkContext() throughput.Context {
	where := surroundings(runtime.NumCPU())
	host, _ := os.Hostname()
	self, _ := os.Executable()
	c := throughput.Context{
		Date: time.Now().Format("2006-01-02T15:04:05-07:00"), HostName: host, Executable: self,
		CPUs: where.CPUs, MHz: megahertz(), LoadAvg: []float64{}, BuildType: "release",
		Scaling: firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") != "",
		Kernel:  where.Kernel, Scheduler: where.Scheduler, Clocksource: where.Clocksource,
	}
	for i, word := range strings.Fields(firstLine("/proc/loadavg")) {
		if v, err := strconv.ParseFloat(word, 64); err == nil && i < 3 {
			c.LoadAvg = append(c.LoadAvg, v)
		}
	}
	return c
}

// megahertz is the speed of the first CPU, 0 when the kernel does not say.
func megahertz() int {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "cpu MHz" {
			mhz, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int(mhz)
		}
	}
	return 0
}
