package edge

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/tenant/limit"
)

// reread is the interval between checks of a limits file.
const reread = 5 * time.Second

// Limits applies the tenants' limits in a file, which limit.Parse describes, and reads the file again after each
// change.
type Limits struct {
	*limit.Limiter
	name string
	seen os.FileInfo // of the version that was read last, valid or not; nil without a file
}

// OpenLimits reads a limits file. Without a name there are no limits, and Limiter is nil.
func OpenLimits(name string) (*Limits, error) {
	l := &Limits{name: name}
	if name == "" {
		return l, nil
	}
	table, err := l.read()
	if err != nil {
		return nil, err
	}
	l.Limiter, err = limit.New(table, limit.Options{})
	return l, err
}

func (l *Limits) read() (limit.Table, error) {
	info, err := os.Stat(l.name)
	l.seen = info // also if it is invalid, so that each invalid version is logged once
	if err != nil {
		return limit.Table{}, err
	}
	data, err := os.ReadFile(l.name)
	if err != nil {
		return limit.Table{}, err
	}
	table, err := limit.Parse(data)
	if err != nil {
		return limit.Table{}, fmt.Errorf("%s: %w", l.name, err)
	}
	return table, nil
}

// Watch reads the file again if it has changed, every five seconds, until ctx ends. While a file is invalid, the limits
// before it apply, and the log says why.
func (l *Limits) Watch(ctx context.Context, log *slog.Logger) {
	if l.name == "" {
		return
	}
	tick := time.NewTicker(reread)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.refresh(log)
		}
	}
}

func (l *Limits) refresh(log *slog.Logger) {
	if info, err := os.Stat(l.name); sameVersion(info, l.seen, err) {
		return
	}
	table, err := l.read()
	if err == nil {
		err = l.Set(table)
	}
	if err != nil {
		log.Error("the limits file cannot be used; the limits before it apply", "error", err)
		return
	}
	log.Info("limits read", "file", l.name)
}

func sameVersion(now, before os.FileInfo, err error) bool {
	if err != nil || before == nil {
		return err != nil && before == nil
	}
	return now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() && os.SameFile(now, before)
}

// RetryAfter sets the Retry-After header, in whole seconds, at least one.
func RetryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))))
}
