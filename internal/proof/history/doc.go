// Package history tests whether what many clients of several stores write and see is possible. CONTRIBUTING.md has its
// commands.
//
// In a history, about twenty clients of three stores on one engine make calls of all kinds. Meanwhile calls fail, hang,
// are delayed or sent twice, lose their responses, streams are cut, cells are collected, and the engine is killed or
// loses power. Unanswered calls may happen, also later.
//
// Then [Porcupine] decides each part of the history: some order of all calls must explain what each did and saw, and
// keep the order in time of calls that do not overlap. A part is one entity: a scan of the engine sees all rows at one
// moment. Bigtable promises that for one row only. So in every second history scans are weak (engine.Options.Weak), and
// a part is one row. A read of the newest fields is compared with the entity's head, or with its points if it read
// these.
//
// The test also checks followers, counters, the rollup, erasures, and points stored on change. The long run fails if a
// rare branch (package reach) was never taken.
//
// Most histories run in a bubble of testing/synctest. The seed does not order what runs at the same moment: repeating a
// failure may take some runs.
//
// [Porcupine]: https://github.com/anishathalye/porcupine
package history
