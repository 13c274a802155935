package main

import (
	"context"
	"fmt"
	"math"

	"rota/bench/runnable"
	"rota/internal/api"
	"rota/internal/config"
)

// classWaits are the waits of a class from its beginning on, by what the daemon
// says then and now.
type classWaits struct {
	ctx     context.Context
	client  *api.Client
	name    string
	earlier api.Status
}

// newClassWaits begins. The end may come when ctx is over already: asking takes
// only the time that the client gives it.
func newClassWaits(ctx context.Context, client *api.Client, name string) (*classWaits, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := findClass(status, name); err != nil {
		return nil, err
	}
	return &classWaits{context.WithoutCancel(ctx), client, name, status}, nil
}

// Close has nothing to give back: the daemon counts anyway.
func (c *classWaits) Close() {}

// Waits asks again.
func (c *classWaits) Waits() (runnable.Waits, error) {
	later, err := c.client.Status(c.ctx)
	if err != nil {
		return runnable.Waits{}, err
	}
	return waitsBetween(c.earlier, later, c.name)
}

func findClass(s api.Status, name string) (api.Class, error) {
	if s.State != api.Running {
		return api.Class{}, fmt.Errorf("class %q: rota is %s and schedules nothing: see: rota status", name, s.State)
	}
	var known []string
	for _, class := range s.Classes {
		if class.Name == name {
			return class, nil
		}
		known = append(known, safe(class.Name))
	}
	return api.Class{}, fmt.Errorf("class %q: is unknown: %s", name, config.Meant(name, known))
}

// waitsBetween is how long tasks of a class waited between two answers.
func waitsBetween(earlier, later api.Status, name string) (runnable.Waits, error) {
	before, err := findClass(earlier, name)
	if err != nil {
		return runnable.Waits{}, err
	}
	after, err := findClass(later, name)
	if err != nil {
		return runnable.Waits{}, fmt.Errorf("meanwhile: %w", err)
	}
	if earlier.PID != later.PID || earlier.Restarts != later.Restarts {
		return runnable.Waits{}, fmt.Errorf("class %q: the scheduler was loaded again meanwhile: measure again", name)
	}
	w := runnable.Waits{MeanMicros: runnable.Unknown, Histogram: make([]uint64, len(after.WaitHistogram))}
	highest := 0
	for i, n := range after.WaitHistogram {
		if i < len(before.WaitHistogram) {
			n -= min(before.WaitHistogram[i], n)
		}
		w.Histogram[i] = n
		if n > 0 {
			highest = i
		}
	}
	// The daemon keeps the longest wait of all: when that grew it was now.
	w.MaxMicros = after.WaitMaxMicros
	if w.MaxIsBound = after.WaitMaxMicros <= before.WaitMaxMicros; w.MaxIsBound && highest+1 < len(w.Histogram) {
		w.MaxMicros = min(w.MaxMicros, math.Ldexp(1, highest))
	}
	return w, nil
}
