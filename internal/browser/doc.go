// Package browser tests pages of this project in a headless Chromium. It is a module of its own, so that no user's
// module requires what drives the browser. Its tests are skipped where no Chromium or Chrome is installed.
package browser
