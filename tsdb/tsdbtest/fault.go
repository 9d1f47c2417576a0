package tsdbtest

import (
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Method is a call of Bigtable's data API, by its name in the service: ReadRows, MutateRow, MutateRows or
// CheckAndMutateRow.
type Method string

// The methods that a store calls. The zero Method means all of them. Calls of the table admin API have no faults.
const (
	ReadRows          Method = "ReadRows"
	MutateRow         Method = "MutateRow"
	MutateRows        Method = "MutateRows"
	CheckAndMutateRow Method = "CheckAndMutateRow"
)

// Fault is a fault of the connection. Create one with Fail, LoseResponse, CutStream, Hang, FailEntries, Repeat, Delay,
// DelayBy or LimitRate. Restrict it with On, Skip and Times, and activate it with Conn.Inject. The zero Fault does
// nothing. A Fault is a value: the methods return a changed copy.
type Fault struct {
	method Method
	skip   int
	times  int // 0: no limit

	effects
	delay func() time.Duration
}

// effects are what goes wrong with a call. All are zero if nothing does.
type effects struct {
	before  error // instead of the call
	repeat  bool
	lose    error // instead of the response
	cut     error // of a stream, after cutAt rows or entry results
	cutAt   int
	hang    bool  // the stream waits for its context before it returns cut
	entry   error // of the entries that match
	entries func(key string) bool
	limit   *btpb.RateLimitInfo // in each response to a bulk write
}

// Fail makes calls fail with the code before they reach the engine: nothing is applied.
func Fail(code codes.Code) Fault { return Fault{effects: effects{before: fault(code, "before")}} }

// LoseResponse lets the engine execute calls and then loses the response: the caller gets the code.
func LoseResponse(code codes.Code) Fault { return Fault{effects: effects{lose: fault(code, "after")}} }

// CutStream ends a stream with the code after a number of rows (ReadRows) or entry results (MutateRows). The engine
// has executed the whole call.
func CutStream(after int, code codes.Code) Fault {
	return Fault{effects: effects{cut: fault(code, "within"), cutAt: after}}
}

// Hang stops a stream after a number of rows (ReadRows) or entry results (MutateRows) without an error, as a network
// that is silent: the caller waits until its context ends. The engine has executed the whole call.
func Hang(after int) Fault {
	return Fault{effects: effects{cut: fault(codes.DeadlineExceeded, "within"), cutAt: after, hang: true}}
}

// FailEntries makes the entries of a bulk write whose row keys match fail with the code. They are not applied; the
// others are.
func FailEntries(code codes.Code, match func(key string) bool) Fault {
	return Fault{method: MutateRows, effects: effects{entry: fault(code, "entry"), entries: match}}
}

// Repeat makes the connection send each call of one row (MutateRow, CheckAndMutateRow) twice and return the second
// response. A proxy does that if it repeats a call after losing the first response. Other calls pass once.
func Repeat() Fault { return Fault{effects: effects{repeat: true}} }

// Delay makes each call wait before it reaches the engine, at most until the call's context ends.
func Delay(d time.Duration) Fault { return DelayBy(func() time.Duration { return d }) }

// DelayBy delays each call by a result of draw, such as a random one. Many goroutines call draw at
// once.
func DelayBy(draw func() time.Duration) Fault { return Fault{delay: draw} }

// LimitRate adds advice on the rate of bulk writes to their responses (MutateRows): the writer is to multiply its load
// by factor, and not to change it again before period is over. As Bigtable, it adds it only for callers that ask for
// it: tsdb.WriterOptions.FlowControl. Any value is sent as it is; the SDK ignores a factor or period that is not
// positive, and bounds others.
func LimitRate(factor float64, period time.Duration) Fault {
	return Fault{method: MutateRows, effects: effects{limit: &btpb.RateLimitInfo{Factor: factor, Period: durationpb.New(period)}}}
}

// On restricts the fault to one method.
func (f Fault) On(m Method) Fault {
	f.method = m
	return f
}

// Skip lets the first n calls to which the fault applies pass.
func (f Fault) Skip(n int) Fault {
	f.skip = n
	return f
}

// Times ends the fault after n calls. Without it the fault stays until Conn.Clear.
func (f Fault) Times(n int) Fault {
	f.times = n
	return f
}

func fault(code codes.Code, when string) error {
	return status.Error(code, "fault injected "+when+" the call")
}

// plan is all that goes wrong with one call.
type plan struct {
	effects
	delay time.Duration
}

// add adds a fault to the plan. It replaces an earlier fault of the same kind; delays add up.
func (p *plan) add(f Fault) {
	if f.before != nil {
		p.before = f.before
	}
	if f.lose != nil {
		p.lose = f.lose
	}
	if f.cut != nil {
		p.cut, p.cutAt, p.hang = f.cut, f.cutAt, f.hang
	}
	if f.entry != nil {
		p.entry, p.entries = f.entry, f.entries
	}
	if f.limit != nil {
		p.limit = f.limit
	}
	p.repeat = p.repeat || f.repeat
	if f.delay != nil {
		p.delay += f.delay()
	}
}
