package where

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// logged is a hook that says when it is closed.
type logged struct {
	name string
	log  *[]string
}

func (l logged) Close() error {
	*l.log = append(*l.log, "-"+l.name)
	return nil
}

func loggingHooks(log *[]string, refused string) *hooks {
	return &hooks{
		attach: func(name string) (io.Closer, error) {
			if name == refused {
				return nil, errors.New("refused")
			}
			*log = append(*log, "+"+name)
			return logged{name, log}, nil
		},
		sleep: func(time.Duration) { *log = append(*log, "sleep") },
	}
}

const (
	taken = "+where_softirq_end +where_hardirq_end +where_softirq +where_hardirq"
	gone  = "-where_softirq -where_hardirq sleep -where_softirq_end -where_hardirq_end"
)

func TestHooks(t *testing.T) {
	for name, tt := range map[string]struct {
		looks [][2]uint64 // calls of tasks, in interrupts
		want  string
	}{
		"nobody":                {[][2]uint64{{0, 0}, {0, 0}}, taken},
		"tasks":                 {[][2]uint64{{0, 0}, {3, 0}, {5, 0}}, taken + " " + gone},
		"interrupts":            {[][2]uint64{{0, 2}, {0, 2}}, taken},
		"both":                  {[][2]uint64{{9, 2}, {20, 2}}, taken},
		"interrupts after all":  {[][2]uint64{{9, 0}, {10, 1}, {30, 1}}, strings.Join([]string{taken, gone, taken}, " ")},
		"interrupts, then task": {[][2]uint64{{0, 1}, {30, 1}}, taken},
	} {
		var log []string
		h := loggingHooks(&log, "")
		if err := h.take(); err != nil {
			t.Fatal(err)
		}
		for _, look := range tt.looks {
			if err := h.follow(look[0], look[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(log, " ")); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What could not be attached is said, and what was attached is let go by close.
func TestHooksRefused(t *testing.T) {
	var log []string
	h := loggingHooks(&log, "where_softirq")
	err := h.take()
	if err == nil || !strings.Contains(err.Error(), "attach where_softirq: refused") {
		t.Errorf("error %v", err)
	}
	h.close()
	if diff := cmp.Diff("+where_softirq_end +where_hardirq_end -where_softirq_end -where_hardirq_end", strings.Join(log, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestBy(t *testing.T) {
	r := Report{Executors: []Executor{{Context: InTask, Count: 3}, {Context: InSoftirq, Count: 5}, {Context: InTask, Count: 4}}}
	if got := r.by(InTask); got != 7 {
		t.Errorf("%d calls of tasks, want 7", got)
	}
}
