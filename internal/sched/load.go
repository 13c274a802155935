package sched

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// window is over what the cap of a priority class is counted; it is
// PRIORITY_WINDOW_NS of bpf/priority.bpf.h.
const window = 100 * time.Millisecond

// Scheduler is a loaded and attached scheduler.
type Scheduler struct {
	log      *slog.Logger
	coll     *ebpf.Collection
	links    []io.Closer // the first is the scheduler itself
	reader   *ringbuf.Reader
	events   chan Event
	exit     chan ExitInfo
	done     chan struct{} // closed when the event reader has ended
	since    time.Time
	topology topology
	params   Params
	asked    closing
	ownable  bool          // this kernel lets CPUs belong to classes
	owned    bool          // some do, or did
	record   int           // Params.Record, which holds from loading on
	epoch    uint32        // counts SetCounters
	quit     chan struct{} // closed when nothing is to be attached any more

	known *known

	hooks  sync.Mutex   // held by whoever attaches and detaches; guards what follows, and links
	wanted uint32       // the waits that boost, 1 << reason, and always
	always uint32       // what configurations don't change
	tried  map[int]bool // of sources
	// refused says of those that could not be attached why.
	refused map[int]error
	closed  bool
}

// Load loads the scheduler with p and attaches it. When it returns, every
// task of SCHED_OTHER, BATCH and IDLE runs under rota. It fails where Check
// reports a fatal finding; the error then says which.
func Load(ctx context.Context, p Params, log *slog.Logger) (*Scheduler, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	cache := btf.NewCache()
	kernel, err := cache.Kernel()
	for _, finding := range check(kernel, err) {
		if finding.Fatal && !finding.OK {
			return nil, &UnfitError{Finding: finding}
		}
		if !finding.OK && !finding.Fatal {
			log.Warn(finding.Name+": "+finding.Detail, "fix", finding.Fix)
		}
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("locked memory: %w", err)
	}
	topo, err := readTopology(os.DirFS("/sys/devices/system/cpu"))
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		log: log, topology: topo, params: p, record: p.Record,
		events: make(chan Event, 256), exit: make(chan ExitInfo, 1), done: make(chan struct{}),
		quit: make(chan struct{}), tried: map[int]bool{}, refused: map[int]error{},
	}
	o, err := openImageFor(cache, kernel)
	if err != nil {
		return nil, err
	}
	s.ownable = hasFunction(kernel, "scx_bpf_select_cpu_and")
	if err := s.load(o); err != nil {
		s.release()
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		s.release()
		return nil, err
	}
	if err := s.attach(o); err != nil {
		s.release()
		return nil, err
	}
	go s.followModules()
	s.since = time.Now()
	go s.read()
	return s, nil
}

// releaseCallback is how the kernel says before 6.19 that a higher scheduling class takes a CPU.
const releaseCallback = "rota_cpu_release"

// hasFunction tells whether BPF programs of this kernel may call a function.
func hasFunction(kernel *btf.Spec, name string) bool {
	if kernel == nil {
		return false
	}
	function, err := kernelFunc(kernel, name)
	return err == nil && function != nil
}

// load puts the programs and maps into the kernel, configured.
func (s *Scheduler) load(o *image) (err error) {
	spec := o.spec.Copy()
	if err := setOpsFlags(spec, o.kernel); err != nil {
		return err
	}
	for _, name := range optionalPrograms() {
		delete(spec.Programs, name) // see attachSource
	}
	if !keepsLimits(o.kernel) {
		delete(spec.Programs, limitsCallback)
	}
	if hasFunction(o.kernel, "scx_bpf_reenqueue_local___v2") {
		delete(spec.Programs, releaseCallback) // not needed, and 7.2 warns of it
	}
	if err := s.prepare(spec); err != nil {
		return err
	}
	if err := s.makeRoom(spec); err != nil {
		return err
	}
	s.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: o.cache})
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) {
		s.log.Debug("verifier", "log", fmt.Sprintf("%+v", verifier))
		return fmt.Errorf("scheduler refused by the kernel's verifier: %w", err)
	}
	if err != nil {
		return fmt.Errorf("load scheduler: %w", err)
	}
	s.known = newKnown(s.coll, uint32(os.Getpid()))
	return nil
}

// prepare writes what must be known before the first task is seen.
func (s *Scheduler) prepare(spec *ebpf.CollectionSpec) error {
	t := s.topology
	variables := map[string]any{
		"topology":        rotaTopology{NrCpus: uint32(t.cpus), NrLlcs: uint32(len(t.size))},
		"llc_of":          padded(t.llcOf, maxCPUs),
		"llc_place":       padded(t.places(), maxCPUs),
		"llc_cpus":        padded(t.order, maxCPUs),
		"llc_first":       padded(t.first, maxLLCs),
		"llc_size":        padded(t.size, maxLLCs),
		"knobs":           s.params.knobs(),
		"classes":         s.params.classes(),
		"priority_cap_ns": s.params.tierCap(),
	}
	for name, value := range variables {
		variable, ok := spec.Variables[name]
		if !ok {
			return fmt.Errorf("scheduler object: no variable %q; build it again with: make build", name)
		}
		if err := variable.Set(value); err != nil {
			return fmt.Errorf("scheduler object: variable %q: %w", name, err)
		}
	}
	return nil
}

// padded is list with n entries, the rest of them 0.
func padded(list []uint32, n int) []uint32 {
	return append(list[:len(list):len(list)], make([]uint32, n-len(list))...)
}

// opsFlags are set where the kernel knows them. Exiting and
// migration-disabled tasks come to us like any other, so that they do not
// jump the queue; remote wake-ups may be handed over without the remote lock.
// Who has nobody beside it comes to us too when its cgroup must stop.
var opsFlags = []string{
	"SCX_OPS_ENQ_LAST",
	"SCX_OPS_ENQ_EXITING", "SCX_OPS_ENQ_MIGRATION_DISABLED", "SCX_OPS_ALLOW_QUEUED_WAKEUP",
}

// setOpsFlags fills ops.flags with the values that this kernel gives them.
func setOpsFlags(spec *ebpf.CollectionSpec, kernel *btf.Spec) error {
	var enum *btf.Enum
	if err := kernel.TypeByName("scx_ops_flags", &enum); err != nil {
		return fmt.Errorf("kernel BTF: enum scx_ops_flags: %w", err)
	}
	var flags uint64
	for _, value := range enum.Values {
		for _, name := range opsFlags {
			if value.Name == name {
				flags |= value.Value
			}
		}
	}
	return setOpsMember(spec, "flags", flags)
}

// setOpsMember writes a 64-bit member of the ops table before it is loaded.
func setOpsMember(spec *ebpf.CollectionSpec, name string, value uint64) error {
	ops, ok := spec.Maps["rota_ops"]
	if !ok || len(ops.Contents) != 1 {
		return errors.New("scheduler object: no ops table; build it again with: make build")
	}
	data, isBytes := ops.Contents[0].Value.([]byte)
	table, isStruct := btf.As[*btf.Struct](ops.Value)
	if !isBytes || !isStruct {
		return errors.New("scheduler object: ops table of an unknown form; build it again with: make build")
	}
	for _, member := range table.Members {
		if member.Name == name {
			spec.ByteOrder.PutUint64(data[member.Offset.Bytes():], value)
			return nil
		}
	}
	return fmt.Errorf("scheduler object: ops table has no member %q", name)
}

// attach turns the scheduler on. The hooks come first, so that nothing
// that happens to a task afterwards is missed.
func (s *Scheduler) attach(o *image) error {
	reader, err := ringbuf.NewReader(s.coll.Maps["events"])
	if err != nil {
		return fmt.Errorf("open events: %w", err)
	}
	s.reader = reader
	hook, err := link.AttachTracing(link.TracingOptions{Program: s.coll.Programs["rota_on_exec"]})
	if err != nil {
		return fmt.Errorf("attach rota_on_exec: %w", err)
	}
	s.links = append(s.links, hook)
	s.want(s.params.reasons(), o)
	free := occupyBelow(lastFD)
	ops, err := link.AttachStructOps(link.StructOpsOptions{Map: s.coll.Maps["rota_ops"]})
	free()
	if err != nil {
		return fmt.Errorf("attach scheduler: %w", attachHint(err))
	}
	s.links = append([]io.Closer{ops}, s.links...)
	return nil
}

// lastFD is above all other descriptors of the daemon, and below the usual limit.
const lastFD = 900

// occupyBelow takes all free descriptors below fd until free is called: what is opened
// meanwhile has a higher one. Of what a killed daemon had the kernel lets go in the opposite
// order (task works are a stack): with the highest descriptor for the link of the scheduler
// every task has the kernel's own scheduler before the hooks go, which takes long. The
// scheduler is on before the call that attaches it returns: its first descriptor must be
// that one. Where the limit is lower it takes a little longer, then.
func occupyBelow(fd int) (free func()) {
	var taken []int
	free = func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
		taken = nil
	}
	next, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == nil {
		if taken = append(taken, next); next >= fd {
			return free
		}
		next, err = unix.FcntlInt(uintptr(next), unix.F_DUPFD_CLOEXEC, 0)
	}
	free()
	return free
}

// unlink detaches the scheduler and its hooks. While the kernel takes its tasks
// back they run without having been picked, which is not for the record.
func (s *Scheduler) unlink() {
	if s.coll != nil && s.params.Record > 0 {
		if err := s.coll.Variables["record_stopped"].Set(uint32(1)); err != nil {
			s.log.Warn("record: the end of it will show tasks that nobody picked", "error", err)
		}
	}
	s.hooks.Lock()
	defer s.hooks.Unlock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	for _, l := range s.links {
		l.Close()
	}
	s.links = nil
}

// release gives back everything, in the order that detaches first.
func (s *Scheduler) release() {
	s.unlink()
	if s.reader != nil {
		s.reader.Close()
	}
	if s.coll != nil {
		s.coll.Close()
	}
}
