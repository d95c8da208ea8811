// What comes before anything else, and so is no module.
{
  // The colours that the person chose; without a choice the system's hold.
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;

  // Browsers drop what they are about to load when the machine gets another network
  // interface, which it does with each pod that starts: then all is loaded again.
  const again = () => {
    const times = Number(sessionStorage.getItem("again"));
    if (times >= 5) return; // it is something else
    sessionStorage.setItem("again", times + 1);
    setTimeout(() => location.reload(), 300 * (times + 1));
  };
  addEventListener("error", (event) => event.target.tagName === "LINK" && again(), true);
  import(document.currentScript.dataset.page).then(() => sessionStorage.removeItem("again"), (err) => {
    console.warn(err);
    again();
  });
}
