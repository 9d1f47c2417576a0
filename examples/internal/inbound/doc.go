// Package inbound holds what the ingestion servers share after parsing: rules for keys, datasets that are created on
// demand, points made of tags and fields, batches that merge points of one series and time, and the outcome of each
// point, which decides whether a server acknowledges, asks for a retry, or reports a fault.
//
//	keys := inbound.Keys{}
//	keys.Set("cpu=host,*")                       // the flag -key
//	ds, err := inbound.NewDatasets(ctx, store, keys, inbound.Options{})
//	d, err := ds.Find(ctx, id, "cpu")            // for each record
//	b := d.NewPoint()
//	err = b.Tag("host", "a")
//	err = b.Field("usage", codec.Float(1.5))
//	p, err := b.Point(inbound.At(at))
//	sink := inbound.Sink{Store: store, Writer: writer}
//	sink.Enqueue(ctx, id, p, func(out tsdb.Outcome) { … })   // or a Batch, which merges and waits
//
// An *Error says that a record can never be stored as it is. After any other error it may be sent again.
package inbound
