package tsdb

import "github.com/tidemark-go/tidemark/tenant/limit"

// Each public call that touches points asks the store's limiter once: in ready or count for what it writes, and in read,
// readSpan or readWide for what it reads.

// limits are those that the calls are held to; nil for none.
func (r *rows) limits() *limit.Limiter {
	if r.unlimited {
		return nil
	}
	return r.Limits
}

// count counts a point that is about to be sent against its tenant's limits, or refuses it.
func (r *rows) count(path string, w *write) error {
	return r.limits().Write(r.tenant, r.d.Name, path, len(w.payload))
}

// read lets a read begin; done ends it.
func (r *rows) read() (done func(), err error) { return r.limits().Read(r.tenant) }

// readWide is read for one of many requests, which it makes as narrow as the tenant's are.
func (r *rows) readWide(o *readOptions) (done func(), err error) {
	o.width = r.limits().Concurrency(r.tenant, o.width)
	return r.read()
}

// take refuses what must not be written of an entity, and counts it against the tenant's limits.
func (r *rows) take(path string, bytes int) error {
	if err := r.d.CheckKeys(path); err != nil {
		return err
	}
	if err := r.Erased.AdmitEntity(r.tenant, r.d.Name, path); err != nil {
		return err
	}
	return r.limits().Write(r.tenant, r.d.Name, path, bytes)
}
