// The login form: says why an attempt failed, and goes on at once if this browser has a session.
import { applyTheme } from "./theme.js";

applyTheme();
const query = new URLSearchParams(location.search);
const next = query.get("next") || "";
document.getElementById("next").value = next;

const reasons = {
  token: "This token is not known.",
  often: "Too many wrong tokens. Wait a minute, then try again.",
  full: "This session has 16 tenants, which is the most. Log out first.",
  over: "The session is over. Log in again to continue.",
};
const why = document.getElementById("why");
if (reasons[query.get("why")]) {
  why.textContent = reasons[query.get("why")];
  why.hidden = false;
}

// A program on this machine prints a link with a token behind the #, which browsers keep from servers. The address forgets it at once.
const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = decodeURIComponent(given[1]);
  document.querySelector("form").requestSubmit();
}

// A link from another site brings no cookie to its first request, so the server sends even known users here.
if (query.has("add")) {
  document.getElementById("note").textContent = "The session keeps the tenants that it has, and gets the tenant of this token.";
} else if (!given && !query.has("why")) {
  const session = await (await fetch("/api/session")).json();
  if (session.tenants.length || session.operator) location.replace(/^\/[a-z]/.test(next) ? next : "/fleet");
}
