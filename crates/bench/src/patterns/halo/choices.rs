//! The words of halo exchanges: the methods, and the grid of ranks.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::point::choice::choice;

choice! {
    /// How a rank exchanges its four sides with its neighbours.
    pub enum HaloMethod {
        /// MPI_Neighbor_alltoall on a Cartesian communicator.
        Neighbour = "neighbour",
        /// Four MPI_Irecv, four MPI_Isend, and MPI_Waitall for all of them.
        Nonblocking = "nonblocking",
        /// As nonblocking, with requests that are created once: MPI_Startall, MPI_Waitall.
        Persistent = "persistent",
        /// Four MPI_Put between two MPI_Win_fence. In shared memory it is a copy.
        Put = "put",
        /// MPI_Sendrecv in each of the four directions, one after the other.
        Sendrecv = "sendrecv",
    }
}

/// A torus of ranks with rows and columns. Rank r is in row r / columns and column r % columns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grid {
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

impl Grid {
    /// The number of ranks.
    pub(crate) fn ranks(self) -> u32 {
        self.rows * self.columns
    }

    /// The neighbours of a rank: above, below, left and right, in the order of MPI's Cartesian
    /// topologies.
    pub(crate) fn neighbours(self, rank: u32) -> [u32; SIDES] {
        let Self { rows, columns } = self;
        let row = rank / columns;
        let column = rank % columns;
        let at = |row: u32, column: u32| (row % rows) * columns + column % columns;
        [at(row + rows - 1, column), at(row + 1, column), at(row, column + columns - 1), at(row, column + 1)]
    }

    /// Whether both neighbours of a rank in the dimension of `side` are the same rank.
    pub(crate) fn is_narrow(self, side: usize) -> bool {
        (if side < 2 { self.rows } else { self.columns }) <= 2
    }
}

/// The number of sides of a rank's block.
pub(crate) const SIDES: usize = 4;

/// The side at which the neighbour receives what this rank sends from `side`.
pub(crate) fn opposite(side: usize) -> usize {
    side ^ 1
}

impl FromStr for Grid {
    type Err = String;

    /// Parses rows and columns, such as `4x2`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a grid: write rows and columns, such as 4x2, of at most {RANKS_MAX} ranks"
            )
        };
        let (rows, columns) = text.split_once('x').ok_or_else(wrong)?;
        let number =
            |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(wrong);
        let rows = number(rows)?;
        let columns = number(columns)?;
        match rows.checked_mul(columns) {
            Some(ranks) if ranks <= RANKS_MAX => Ok(Self { rows, columns }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl Serialize for Grid {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// More processes than one machine can run, so that a typing error does not start too many.
const RANKS_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_a_torus() {
        let grid: Grid = "3x4".parse().unwrap();
        assert_eq!(grid.to_string(), "3x4");
        assert_eq!(grid.neighbours(0), [8, 4, 3, 1]);
        assert_eq!(grid.neighbours(11), [7, 3, 10, 8]);
        for rank in 0..grid.ranks() {
            for (side, neighbour) in grid.neighbours(rank).into_iter().enumerate() {
                assert_eq!(grid.neighbours(neighbour)[opposite(side)], rank);
            }
        }
        assert!("2x4".parse::<Grid>().unwrap().is_narrow(0) && !grid.is_narrow(2));
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        for text in ["", "4", "4x", "0x2", "-1x2", "64x64", "2x2x2", "axb"] {
            assert!(text.parse::<Grid>().unwrap_err().contains("such as 4x2"), "{text}");
        }
    }
}
