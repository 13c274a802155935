package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"rota/internal/cpulist"
)

// MaxCPU is the largest number that a CPU can have.
const MaxCPU = 1023

// CPUs are the CPUs that a class has to itself.
type CPUs struct {
	Count int   // how many rota is to choose, at least; 0: none, or List
	List  []int // these, in their order; nil: rota chooses
	// Lend: others may use them while they would be idle.
	Lend bool
	// LendAfter: but only once no task of the class has run on any of them for so long,
	// MinLendAfter..MaxLendAfter; 0: whenever one is idle.
	LendAfter time.Duration
	// Follow and Avoid name devices: choose CPUs that serve their interrupts, or others.
	Follow, Avoid string
}

// Wanted tells whether the class is to have any.
func (c CPUs) Wanted() bool { return c.Count > 0 || len(c.List) > 0 }

var deviceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$`)

// cpus reads the CPUs of a class.
func (r *reader) cpus(n *yaml.Node, object string, class *Class) {
	object += ": cpus"
	var asked CPUs
	r.mapping(n, object, []field{
		{"dedicated", value(r, object, "dedicated", parseDedicated, &asked)},
		{"lend", value(r, object, "lend", parseSwitch, &class.CPUs.Lend)},
		{"lendAfter", value(r, object, "lendAfter", parseLendAfter, &class.CPUs.LendAfter)},
		{"followInterrupts", value(r, object, "followInterrupts", parseDevice, &class.CPUs.Follow)},
		{"avoidInterrupts", value(r, object, "avoidInterrupts", parseDevice, &class.CPUs.Avoid)},
	})
	class.CPUs.Count, class.CPUs.List = asked.Count, asked.List
	switch {
	case n.Kind == yaml.MappingNode && child(n, "dedicated") == nil:
		r.fault(n.Line, "add dedicated: a number of CPUs, or a list as \"2-3\"", "%s: says not which", object)
	case class.CPUs.List != nil && (class.CPUs.Follow != "" || class.CPUs.Avoid != ""):
		r.fault(n.Line, "remove it, or write dedicated: a number of CPUs", "%s: interrupts choose nothing where CPUs are listed", object)
	case class.CPUs.LendAfter != 0 && !class.CPUs.Lend:
		r.fault(n.Line, "add lend: true, or remove it", "%s: lendAfter: nothing is lent", object)
	}
}

// cpusOfTier refuses CPUs for classes that cannot hold them.
func (r *reader) cpusOfTier(n *yaml.Node, object string, class *Class) {
	given := child(n, "cpus")
	switch {
	case given == nil:
		return
	case class.Name == DefaultClass:
		r.fault(given.Line, "give CPUs to a class of your own", "%s: cannot own CPUs, every task that no rule matches is in it", object)
	case class.Tier != TierPriority:
		r.fault(given.Line, "remove it, or set tier: priority", "%s: tier %s cannot own CPUs", object, class.Tier)
	default:
		return
	}
	class.CPUs = CPUs{}
}

// ownedOnce refuses CPUs that a class further up has already.
func (r *reader) ownedOnce(n *yaml.Node, class *Class, owners map[int]string) {
	for _, cpu := range class.CPUs.List {
		if owner, twice := owners[cpu]; twice && owner != class.Name {
			r.fault(child(n, "cpus").Line, "list it in one of them", "class %q: cpus: CPU %d belongs to class %q", class.Name, cpu, owner)
			class.CPUs = CPUs{}
			return
		}
		owners[cpu] = class.Name
	}
}

// parseDedicated reads a number of CPUs, or a list with at least one , or -.
func parseDedicated(text string) (CPUs, error) {
	if !strings.ContainsAny(text, ",-") {
		n, err := parseInteger(text, 1, MaxCPU)
		return CPUs{Count: int(n)}, err
	}
	list, err := parseCPUs(text)
	return CPUs{List: list}, err
}

// parseCPUs reads a list in which each CPU stands once, the smallest first.
func parseCPUs(text string) ([]int, error) {
	list, err := cpulist.Parse(text)
	if err != nil || slices.Max(list) > MaxCPU {
		return nil, &valueError{"is not a list of CPUs", fmt.Sprintf("write numbers up to %d, as \"2-3\" or \"2,5\", and \"2-2\" for one", MaxCPU)}
	}
	for i, cpu := range list[1:] {
		if cpu <= list[i] {
			return nil, &valueError{"is not in order", "write each CPU once, the smallest first"}
		}
	}
	return list, nil
}

func parseLendAfter(text string) (time.Duration, error) {
	return parseDuration(text, MinLendAfter, MaxLendAfter)
}

func parseDevice(text string) (string, error) {
	if !deviceForm.MatchString(text) {
		return "", &valueError{"is not the name of a device", "write it as in /proc/interrupts or `ip link`, as enp7s0"}
	}
	return text, nil
}
