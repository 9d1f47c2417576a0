// Package privacy keeps people out of row keys.
//
// Row keys are service data: they show in logs, in errors and in Key Visualizer, and they outlive what they name. A schema
// that sets CheckKeys of tsdb.SchemaOptions to Check refuses to write entities whose parts look like a mail address, a phone
// number or a payment card number:
//
//	tsdb.SchemaOptions{CheckKeys: privacy.Check}
//
// It is a net under a mistake, such as a device that is named by its owner's address, and no proof: names of people, and
// numbers in forms that it does not know, pass.
//
// What is personal and has to tell entities apart goes into keys as a keyed hash, which a Hasher makes.
package privacy
