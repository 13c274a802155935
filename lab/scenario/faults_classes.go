package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rota/lab/guest"
)

// user lets a hog become another user's, as servers do that start as root.
func user(r *faultRun) error {
	s := newStage(r.g, "user")
	defer s.stop()
	before, err := classTasks(r.g, "guests")
	if err != nil {
		return err
	}
	if _, err := s.startHogs(1, guest.Cmd{Args: []string{"4321"}}); err != nil {
		return err
	}
	// It takes 100 ms of CPU time to change, and shares a CPU with other hogs.
	after := before
	for waited := time.Duration(0); after == before && waited < 5*time.Second; waited += 100 * time.Millisecond {
		r.g.Sleep(100 * time.Millisecond)
		if after, err = classTasks(r.g, "guests"); err != nil {
			return err
		}
	}
	if before != 0 || after != 1 {
		return fmt.Errorf("class guests: %d tasks before the hog changed its user, %d after it: must be 0 and 1", before, after)
	}
	return r.survived()
}

// namedEach are the threads of a class that names starts, and namesLimit is how long their
// classes may take.
const (
	namedEach  = 100
	namesLimit = time.Second
)

// names lets threads rename themselves at once beside the hogs, so that some are preempted
// in the midst of it: for others on that CPU the kernel leaves a hook on renames out.
func names(r *faultRun) error {
	s := newStage(r.g, "names")
	defer s.stop()
	want := map[string]int{"urgent": namedEach, "later": namedEach}
	for class := range want {
		before, err := classTasks(r.g, class)
		if err != nil {
			return err
		}
		want[class] += before
	}
	p, err := s.start(guest.Cmd{Path: "names", Args: []string{strconv.Itoa(2 * namedEach), "5"}})
	if err != nil {
		return err
	}
	for !strings.Contains(p.Output().Stdout, "quiet") {
		if !p.Running() {
			return errors.New("names: ended before all had their names")
		}
		r.g.Sleep(50 * time.Millisecond)
	}
	r.g.Sleep(namesLimit)
	for class, tasks := range want {
		got, err := classTasks(r.g, class)
		if err != nil {
			return err
		}
		if got != tasks {
			return fmt.Errorf("class %s: %d tasks %v after all had their names, must be %d", class, got, namesLimit, tasks)
		}
	}
	return r.survived()
}
