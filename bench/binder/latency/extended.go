package latency

import (
	"maps"
	"slices"

	"rota/bench/binder/pairs"
)

// Context is where a result comes from.
type Context struct {
	Kernel      string `json:"kernel"`
	Machine     string `json:"machine"`
	Scheduler   string `json:"scheduler"`
	Clocksource string `json:"clocksource"`
	CPUs        int    `json:"cpus"`
}

// extended is what the original does not have, under one key of its own.
type extended struct {
	Context     Context      `json:"context"`
	Device      string       `json:"device"`
	Inheritance Verdicts     `json:"inheritance"`
	All         callers      `json:"all"`
	Pairs       []callers    `json:"pairs"`
	Pipe        scales       `json:"pipe"`
	Left        *pairs.Books `json:"left,omitempty"`
	LeftFault   string       `json:"left_unknown,omitempty"`
}

// callers are the two kinds of calls.
type callers struct {
	Other spans `json:"other"`
	Fifo  spans `json:"fifo"`
}

// spans are the times of calls, and of the part until the server had them.
type spans struct {
	Call       Spread `json:"call"`
	Delivery   Spread `json:"delivery"`
	MoreIoctls int    `json:"calls_of_more_than_one_ioctl"`
}

// scales are round trips over bare pipes, of ordinary and of real-time threads,
// and how many of those a call takes.
type scales struct {
	Other        Spread  `json:"other"`
	Fifo         Spread  `json:"fifo"`
	CallsInPipes float64 `json:"binder_p50_over_pipe_p50"`
}

func (r *Result) extended(about Context) extended {
	e := extended{Context: about, Device: r.Options.Device, Left: r.Left}
	if r.LeftFault != nil {
		e.LeftFault = r.LeftFault.Error()
	}
	var all Samples
	for _, i := range slices.Sorted(maps.Keys(r.Pairs)) {
		s := r.Pairs[i]
		e.Pairs = append(e.Pairs, r.callers(s).withoutBars())
		all.Other, all.Fifo = all.Other.and(s.Other), all.Fifo.and(s.Fifo)
	}
	e.All = r.callers(all)
	e.Inheritance = r.verdicts(all.Fifo)
	e.Pipe = scales{Other: spread(nanoseconds(r.PipeOther)), Fifo: spread(nanoseconds(r.PipeFifo))}
	if e.Pipe.Other.P50 > 0 {
		e.Pipe.CallsInPipes = e.All.Other.Call.P50 / e.Pipe.Other.P50
	}
	return e
}

func (r *Result) callers(s Samples) callers {
	of := func(s Series) spans {
		call := spread(s.Spans)
		if n := len(s.Spans); n > 0 {
			miss := misses(s.Spans, r.Options.Deadline)
			call.Misses = &MissedOf{miss, float64(miss) / float64(n)}
		}
		return spans{call, spread(s.Deliveries), s.count(moreIoctls)}
	}
	return callers{of(s.Other), of(s.Fifo)}
}

// withoutBars leaves the histograms out: those of all pairs together are enough.
func (c callers) withoutBars() callers {
	for _, s := range []*Spread{&c.Other.Call, &c.Other.Delivery, &c.Fifo.Call, &c.Fifo.Delivery} {
		s.Buckets = nil
	}
	return c
}
