"use strict";
// While runs are taken in: how many are left, and the page anew once all are there.
(() => {
  const note = document.getElementById("taking");
  const look = async () => {
    try {
      const { pending } = await (await fetch(note.dataset.api)).json();
      if (!pending) return location.reload();
      note.querySelector("span:nth-of-type(2)").textContent = `${pending} new runs are yet to be taken in; this page tells what is known so far.`;
    } catch { /* the server may be gone; whoever looks will see */ }
    setTimeout(look, 2000);
  };
  setTimeout(look, 1000);
})();
