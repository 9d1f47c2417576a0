// Package keys keeps personal data out of row keys, which appear in logs, in errors and in Key Visualizer, and outlive
// what they name. With [CheckPersonal] a schema refuses to write entities whose parts look like a mail address or a
// payment card number:
//
//	tsdb.SchemaOptions{CheckKeys: keys.CheckPersonal}
//
// It proves nothing: names of people and phone numbers pass. If personal data must identify entities, use a keyed hash
// of it, made by a [Hasher].
package keys
