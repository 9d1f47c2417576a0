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

// A link from another site brings no cookie to its first request, so the server sends even known users here.
if (query.has("add")) {
  document.getElementById("note").textContent = "The session keeps the tenants that it has, and gets the tenant of this token.";
} else if (!query.has("why")) {
  const session = await (await fetch("/api/session")).json();
  if (session.tenants.length) location.replace(/^\/[a-z]/.test(next) ? next : "/fleet");
}
