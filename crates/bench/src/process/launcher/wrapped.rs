//! The command of a launcher with variables for its ranks and not for itself.

use super::kind::{self, Kind};
use crate::Error;

/// Returns the command with options after the launcher's word that set these variables for all
/// ranks.
///
/// # Errors
/// [`Error::NotWrapped`] for a command without a known launcher, or with options that contradict
/// these; [`Error::NoLauncher`] where the launcher is not installed.
pub fn wrapped(words: &[String], variables: &[(&str, String)]) -> Result<Vec<String>, Error> {
    let place = kind::place(words);
    let program = kind::program(words).to_owned();
    if !words.get(place).is_some_and(|word| kind::is_launcher(word)) {
        return Err(not_wrapped(
            program,
            "is not a launcher such as mpirun, mpiexec or srun: leave --wrap out",
        ));
    }
    let (kind, _) = Kind::of(&program)?;
    with_variables(words, place, kind, variables)
}

fn with_variables(
    words: &[String],
    place: usize,
    kind: &Kind,
    variables: &[(&str, String)],
) -> Result<Vec<String>, Error> {
    let program = words[place].clone();
    let Some(assigns) = &kind.assigns else {
        let why = "is a launcher whose options for variables are unknown (known are Open MPI, MPICH and Slurm): leave --wrap \
                   out if its ranks inherit its environment";
        return Err(not_wrapped(program, why));
    };
    let own = |word: &String| assigns.own.is_some_and(|own| word.split('=').next() == Some(own));
    if words[place..].iter().any(own) {
        return Err(not_wrapped(
            program,
            "has an option --export, which would override that of --wrap: leave one out",
        ));
    }
    let (before, behind) = words.split_at(place + 1);
    let options = (assigns.options)(variables);
    Ok(before.iter().cloned().chain(options).chain(behind.iter().cloned()).collect())
}

fn not_wrapped(program: String, why: &'static str) -> Error {
    Error::NotWrapped { program, why }
}

#[cfg(test)]
mod tests {
    use super::super::kind::KINDS;
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn with(name: &str, command: &str) -> Result<String, String> {
        let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
        let variables = [("LD_PRELOAD", "/a.so".to_owned()), ("LINK", "4X FDR,gap=1ns".to_owned())];
        let command = words(command);
        let done = with_variables(&command, kind::place(&command), kind, &variables);
        done.map(|words| words.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_stand_behind_the_word_of_the_launcher() {
        let open_mpi = with("Open MPI", "env A=b mpirun -np 4 app -x").unwrap();
        assert_eq!(open_mpi, "env A=b mpirun -x LD_PRELOAD=/a.so -x LINK=4X FDR,gap=1ns -np 4 app -x");
        let hydra = with("MPICH", "mpiexec.hydra -n 4 app").unwrap();
        assert_eq!(hydra, "mpiexec.hydra -genv LD_PRELOAD /a.so -genv LINK 4X FDR,gap=1ns -n 4 app");
        let slurm = with("Slurm", "srun -n 4 app").unwrap();
        assert_eq!(slurm, "srun --export=ALL,LD_PRELOAD=/a.so,LINK='4X FDR,gap=1ns' -n 4 app");
    }

    #[test]
    fn what_cannot_be_wrapped_is_a_sentence() {
        let error = with("Slurm", "srun --export=NONE -n 4 app").unwrap_err();
        assert_eq!(error, "srun has an option --export, which would override that of --wrap: leave one out");
        let error = wrapped(&words("ib_send_lat -a"), &[]).unwrap_err().to_string();
        assert!(error.starts_with("ib_send_lat is not a launcher"), "{error}");
    }
}
