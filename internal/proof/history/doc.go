// Package history holds a test that records what many clients of several stores write and see, and asks whether that is
// possible. CONTRIBUTING.md has its commands.
//
// A history is one engine, three stores that stand for programs, and about twenty clients, which make calls of all
// kinds. Meanwhile calls fail, hang, are delayed or sent twice, lose their responses, and streams are cut. The engine
// loses its power or is killed two or three times. Calls that are not answered may have happened, or happen later.
//
// Then [Porcupine] decides each part of the history: there must be an order of all calls in which each does and sees
// what it did and saw, and which agrees with the order in time of calls that do not overlap. A part is one entity: a
// scan of the engine sees all rows at one moment. Bigtable promises that for one row only. So in every second history
// the engine's scans are weak (engine.Options.Weak), and a part is one row.
//
// The test also checks followers, counters, the rollup, and erasures. The long run fails if a rare branch (package
// reach) was never taken.
//
// Most histories run in a bubble of testing/synctest. The seed does not determine the order of what runs at the same
// moment, so a history may take some runs to repeat.
//
// [Porcupine]: https://github.com/anishathalye/porcupine
package history
