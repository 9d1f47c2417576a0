// Package privacy keeps personal data out of row keys.
//
// Row keys are service data: they appear in logs, in errors and in Key Visualizer, and they outlive the things that
// they name. If tsdb.SchemaOptions.CheckKeys is Check, a schema refuses to write entities whose parts look like a
// mail address, a phone number or a payment card number:
//
//	tsdb.SchemaOptions{CheckKeys: privacy.Check}
//
// Check catches mistakes, such as a device named after its owner's mail address. It proves nothing: names of people,
// and numbers in forms that it does not know, pass.
//
// If personal data must identify entities, use a keyed hash of it in keys. A Hasher makes such hashes.
package privacy
